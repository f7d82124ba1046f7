"""One fold of the metadata log that all stand-ins read: equal logs give equal images, so one stands for all of them.

A hundred images of a hundred thousand partitions would not fit into one process. What a stand-in may see is what it has
fetched and knows to be committed, and no more.
"""

from collections import deque

from ottla.metadata.fold import Change, Fold
from ottla.metadata.frame import decode
from ottla.metadata.image import Image
from ottla.metadata.topics import PartitionState
from ottla.wire.batch import read_records, scan

Place = tuple[bytes, int]


class Library:
    """Changes by the offset at which they are complete."""

    def __init__(self) -> None:
        self._fold = Fold()
        self._batches: dict[
            int, tuple[bytes, int]
        ] = {}  # not folded yet, by first offset: the end, and the bytes
        self._changes: deque[Change] = deque()
        self._behind: dict[int, tuple[int, dict[int, list[tuple[Place, PartitionState]]]]] = {}
        self.records = 0

    @property
    def image(self) -> Image:
        return self._fold.image

    def shelve(self, data: bytes) -> None:
        """Keep what somebody has fetched; whoever fetches the same later brings nothing new."""
        for position, batch in scan(data):
            if batch.base_offset >= self._fold.end_offset:
                self._batches[batch.base_offset] = (
                    bytes(data[position : position + batch.size]),
                    batch.end_offset,
                )

    def changes(self, start_offset: int, end_offset: int) -> list[Change]:
        """What a reader learns who had all before `start_offset` and has all before `end_offset` now."""
        while self._fold.end_offset < end_offset:
            self._fold_batch(*self._batches.pop(self._fold.end_offset))
        return [each for each in self._changes if start_offset <= each.image.offset < end_offset]

    def forget(self, offset: int) -> None:
        """Nobody will ask for what is below."""
        while self._changes and self._changes[0].image.offset < offset:
            self._changes.popleft()

    def _fold_batch(self, data: bytes, end_offset: int) -> None:
        for position, batch in scan(data):
            if not batch.is_control:
                for record in read_records(data, position):
                    self._fold.apply(record.offset, decode(record.value or b""))
                    self.records += 1
            self._fold.advance(end_offset, batch.partition_leader_epoch, batch.max_timestamp)
        self._changes.extend(self._fold.settle())

    def out_of_sync(self, change: Change, broker: int) -> dict[int, list[tuple[Place, PartitionState]]]:
        """Partitions with a replica on this broker that is not in sync, by their leader; worked out once."""
        known = self._behind.get(broker)
        if known is not None and known[0] == change.image.offset:
            return known[1]
        found: dict[int, list[tuple[Place, PartitionState]]] = {}
        for topic in change.image.topics.by_id.values():
            for index, state in topic.partitions.items():
                if broker in state.replicas and broker not in state.isr:
                    found.setdefault(state.leader, []).append(((topic.id, index), state))
        self._behind[broker] = change.image.offset, found
        return found
