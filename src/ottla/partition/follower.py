"""What a leader knows of one follower: how far it has come, and when it was last level with the leader.

F1  A follower is caught up at the time of a fetch that asks for the leader's end, or of the fetch before, if this one
    asks for where the leader ended then. So one that keeps pace with a busy leader counts, though it is never level.
F2  A fetch of an earlier life of the follower's broker says nothing any more (KIP-841).
"""

from ottla.wire.errors import BrokerError, ErrorCode

UNKNOWN = -1
ANY_EPOCH = -1  # of a follower that does not say which life of its broker it is


class Follower:
    """One follower of a partition, as its leader sees it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "id",
        "leader_end_offset",
        "start_offset",
    )

    def __init__(self, id: int) -> None:
        self.id = id
        self.end_offset = UNKNOWN
        self.start_offset = UNKNOWN
        self.caught_up_ms = 0
        self.fetched_ms = 0
        self.leader_end_offset = UNKNOWN  # where the leader ended at the last fetch
        self.broker_epoch: int | None = None

    def begin_epoch(self, now_ms: int, leader_end_offset: int, *, in_sync: bool, new_leader: bool) -> None:
        """A leader epoch begins: one in sync is given its time, and a new leader knows nothing of anybody."""
        self.caught_up_ms = now_ms if in_sync else 0
        if new_leader:
            self.end_offset = self.start_offset = self.leader_end_offset = UNKNOWN
            self.fetched_ms = 0
            self.broker_epoch = None
        else:
            self.leader_end_offset = leader_end_offset
            self.fetched_ms = now_ms if in_sync else 0

    def fetched(
        self, offset: int, start_offset: int, now_ms: int, leader_end_offset: int, broker_epoch: int
    ) -> None:
        """Take in a fetch from `offset` on, which says that all before it is stored there."""
        known = self.broker_epoch
        if known is not None and broker_epoch != ANY_EPOCH and broker_epoch < known:
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"the fetch is of epoch {broker_epoch} of broker {self.id}, which has reached {known}",
            )
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.start_offset = start_offset
        self.leader_end_offset = leader_end_offset
        self.fetched_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it is level with the leader, or was not long ago."""
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max
