"""The outline of a log: its ends, where each epoch begins, and which snapshots stand for what it no longer has.

O1  Epochs and their start offsets grow together. Two logs that hold a record of the same offset and epoch are equal up
    to it, so comparing outlines is comparing logs (the log matching property of Raft).
O2  A log that begins above zero begins where its oldest snapshot ends.
O3  The outline runs ahead of the disk by what the step at hand has decided, and by nothing else.
"""

import enum
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from ottla.raft.snapshot import BOOTSTRAP_ID, SnapshotId


class Fit(enum.Enum):
    """How the end of a follower's log fits into ours."""

    VALID = "valid"  # it is a part of ours
    DIVERGING = "diverging"  # the follower has to cut its log, to what comes along at most
    SNAPSHOT = "snapshot"  # what it needs is no longer in the log


class End(NamedTuple):
    """An end offset, and the epoch of the record before it."""

    offset: int
    epoch: int


class Outline:
    """The outline of one log."""

    __slots__ = ("_epochs", "_starts", "end_offset", "snapshots", "start_offset")

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Iterable[SnapshotId] = (),
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        pairs = list(epochs)
        self._epochs = [epoch for epoch, _ in pairs]
        self._starts = [start for _, start in pairs]
        self.snapshots = sorted(snapshots)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch with its first offset."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; that of the snapshot where the log is empty behind one, and else zero."""
        if self._epochs:
            return self._epochs[-1]
        return next((id.epoch for id in reversed(self.snapshots) if id.offset == self.end_offset), 0)

    def end_of(self, epoch: int) -> End:
        """The last epoch up to `epoch` that the log has, and where it ends."""
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch:
            found = End(self.end_offset, epoch)
        else:
            above = bisect_right(epochs, epoch)
            if above == len(epochs):
                return End(self.end_offset, self.last_epoch)
            # Below all known epochs: what was there is gone, and the log goes on at its first.
            found = End(starts[above], epochs[above - 1] if above else epoch)
        if self.snapshots and found == (self.snapshots[0].offset, epoch):
            # Nothing of this epoch is left but the snapshot, which may end in an older one.
            return End(*self.snapshots[0])
        return found

    def fit(self, offset: int, epoch: int) -> tuple[Fit, End]:
        """How a log that ends at `offset` in `epoch` fits into this one."""
        start_offset = self.start_offset
        if start_offset == 0 and offset == 0:
            return Fit.VALID, End(0, 0)
        if self.snapshots:
            oldest = self.snapshots[0]
            if (
                offset < start_offset
                or (offset == start_offset and epoch != oldest.epoch)
                or epoch < oldest.epoch
            ):
                return Fit.SNAPSHOT, End(*self.snapshots[-1])
        end = self.end_of(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Fit.DIVERGING, end
        return Fit.VALID, End(offset, epoch)

    def cut_for(self, diverging: End) -> int:
        """Where to cut this log when a leader says that its own ends so."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        own = self.end_of(diverging.epoch)
        return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot worth sending; what formatting left is none."""
        return self.snapshots[-1] if self.snapshots and self.snapshots[-1] != BOOTSTRAP_ID else None

    def append(self, end_offset: int, epoch: int) -> None:
        """Note a batch at the end of the log."""
        if not self._epochs or epoch > self._epochs[-1]:
            self._epochs.append(epoch)
            self._starts.append(self.end_offset)
        self.end_offset = end_offset

    def truncate(self, end_offset: int) -> None:
        """Note that the log was cut."""
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()
        self.end_offset = end_offset

    def reset(self, id: SnapshotId) -> None:
        """Note that the log was replaced by a snapshot, behind which it goes on."""
        self._epochs.clear()
        self._starts.clear()
        self.start_offset = self.end_offset = id.offset
        self.snapshots = [each for each in self.snapshots if each > id]
        self.snapshots.insert(0, id)

    def add_snapshot(self, id: SnapshotId) -> None:
        """Note a snapshot that was taken of the log."""
        if id not in self.snapshots:
            self.snapshots = sorted([*self.snapshots, id])

    def trim(self, id: SnapshotId) -> None:
        """Note that what a snapshot stands for was removed from the log, and the snapshots before it too."""
        if id.offset <= self.start_offset:
            return
        passed = bisect_right(self._starts, id.offset)
        if passed:
            del self._starts[: passed - 1], self._epochs[: passed - 1]
            self._starts[0] = id.offset
        self.start_offset = id.offset
        self.snapshots = [each for each in self.snapshots if each >= id]
