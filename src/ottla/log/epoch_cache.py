"""Leader epochs: at which offset each leader's reign over the log began.

E1  Epochs and start offsets both grow from entry to entry; a new entry pushes out those that contradict it.
E2  The file lacks nothing below the checkpointed recovery point. Later entries come back from the batches, which carry
    their leader's epoch: an append never waits for this file, and `flush` leaves the sync to the log's next one.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from ottla.log import names
from ottla.log.checkpoint import CheckpointError, format_lines, read_lines
from ottla.world.disk import Disk

# What a device writes at once. A few epochs fit, and need no second file: should a crash tear them all the same, that
# shows, and they are told again from the batches.
_SECTOR_BYTES = 512

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochStart(NamedTuple):
    """The first offset written under an epoch."""

    epoch: int
    start_offset: int


class EpochCache:
    """The epochs of one log, oldest first."""

    __slots__ = ("_disk", "_entries", "dirty", "latest", "path")

    def __init__(self, disk: Disk, directory: str, entries: list[EpochStart] | None = None) -> None:
        self._disk = disk
        self.path = f"{directory}/{names.LEADER_EPOCHS}"
        self._entries = entries or []
        self.dirty = False
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    @classmethod
    def read(cls, disk: Disk, directory: str) -> "EpochCache":
        """Read the file of a log; raises CheckpointError when it makes no sense."""
        lines = read_lines(disk, f"{directory}/{names.LEADER_EPOCHS}", 2)
        try:
            entries = [EpochStart(int(epoch), int(offset)) for epoch, offset in lines]
        except ValueError:
            raise CheckpointError(
                f"{directory}/{names.LEADER_EPOCHS} has an entry that is no number"
            ) from None
        ascending = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(entries))
        if not ascending:
            raise CheckpointError(f"{directory}/{names.LEADER_EPOCHS} does not ascend")
        return cls(disk, directory, entries)

    @property
    def entries(self) -> list[EpochStart]:
        """All epochs, oldest first."""
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let an epoch begin; the same epoch again changes nothing unless it begins earlier than known."""
        if epoch < 0:
            return
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self._changed()

    def correct(self, epoch: int, offset: int) -> None:
        """Believe the epoch that the batch at `offset` carries more than entries that say otherwise.

        The file may hold epochs that a truncation took away shortly before a crash.
        """
        if epoch < 0 or self.epoch_for(offset) == epoch:
            return
        entries = self._entries
        while entries and (entries[-1].start_offset >= offset or entries[-1].epoch > epoch):
            entries.pop()
        if not entries or entries[-1].epoch < epoch:
            entries.append(EpochStart(epoch, offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the greatest known epoch not above `epoch`, and where it ends: what a follower truncates to."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        entries = self._entries
        above = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if above == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if above == 0:
            return epoch, entries[0].start_offset
        return entries[above - 1].epoch, entries[above].start_offset

    def epoch_for(self, offset: int) -> int | None:
        """Return under which epoch an offset was written."""
        entries = self._entries
        at = bisect_right(entries, offset, key=lambda entry: entry.start_offset)
        return entries[at - 1].epoch if at else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at `end_offset` or beyond."""
        entries = self._entries
        before = len(entries)
        while entries and entries[-1].start_offset >= end_offset:
            entries.pop()
        if len(entries) != before:
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget what ended before `start_offset`; the epoch in force there now begins there."""
        entries = self._entries
        passed = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset)
        if passed and (passed > 1 or entries[0].start_offset != start_offset):
            entries[:passed] = [EpochStart(entries[passed - 1].epoch, start_offset)]
            self._changed()

    def clear(self) -> None:
        """Forget all epochs."""
        if self._entries:
            self._entries.clear()
            self._changed()

    def flush(self) -> str | None:
        """Replace the file, not yet synced, and return its path; None when there is nothing new to say."""
        return self.create() if self.dirty else None

    def create(self) -> str:
        """Write the file, not yet synced, and return its path. A new log has one at once, so that none need be made
        when a node with many logs stops.
        """
        content = format_lines(f"{entry.epoch} {entry.start_offset}" for entry in self._entries)
        in_place = len(content) <= _SECTOR_BYTES
        path = self.path if in_place else self.path + ".tmp"
        file = self._disk.open(path, size=0)
        try:
            file.write_at(0, content)
            file.truncate(len(content))
        finally:
            file.close()
        if not in_place:
            self._disk.rename(path, self.path)
        self.dirty = False
        return self.path

    def move(self, directory: str) -> None:
        """Follow a renamed directory."""
        self.path = f"{directory}/{names.LEADER_EPOCHS}"

    def _changed(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH
        self.dirty = True
