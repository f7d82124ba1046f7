"""What a fetcher knows of one partition that it follows."""

from ottla.partition.copy import last_epoch
from ottla.partition.partition import Partition


class Followed:
    """One partition that is fetched, and what the leader was last told of it."""

    __slots__ = ("epoch", "is_level", "partition", "refusals", "rests", "told")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.rests = False
        self.is_level = False  # whether it has all that the leader had committed when it last answered
        self.refusals = 0  # in a row
        self.told: tuple[int, int, int, int, int] | None = None

    @property
    def is_current(self) -> bool:
        """Whether we still follow in the epoch that this was begun in."""
        partition = self.partition
        return partition.error is None and not partition.is_leader and partition.leader_epoch == self.epoch

    def place(self) -> tuple[int, int, int, int, int]:
        """Where the next fetch begins, as the request says it."""
        log = self.partition.log
        return (
            log.end_offset,
            last_epoch(self.partition),
            log.start_offset,
            self.epoch,
            self.partition.high_watermark,
        )
