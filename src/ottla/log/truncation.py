"""Truncation: a log drops what no leader has, or all that it holds.

L9  A truncation lowers the checkpoints of the directory first, then removes segments from the end on, then cuts. So
    after a crash between any two steps a prefix of the old log is there, and recovery judges whatever was written
    behind the cut. Were a checkpoint lowered last, it would vouch for bytes that came after it.
    Where many logs are cut at once, each checkpoint is lowered once for all of them (`lower_checkpoints`).
L12 A truncation first reads all that it has to know: should that fail, nothing is cut, and it may be tried again. One
    that breaks off once files have gone takes the directory offline, even for want of room or descriptors: the log in
    memory is then not the one that the next start would find.
L14 Which files came and went with a truncation is synced before anything that is written after it counts as durable
    (`Synchronizer`, Y2).
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log.files import LogFiles
from ottla.log.producer_state import Producers
from ottla.log.replay import load_newest, replay
from ottla.log.rewind import Rewind, plan
from ottla.log.segment import Segment
from ottla.wire.errors import BrokerError

if TYPE_CHECKING:
    from ottla.log.home import Home


def lower_checkpoints(cuts: Sequence[tuple[LogFiles, int]]) -> dict[LogFiles, BrokerError]:
    """Let no checkpoint speak of what these cuts, log and offset, are to take away, at one write a checkpoint.

    Cutting the logs costs no checkpoint any more. Return those that cannot be cut now, with the error of their disk.
    """
    homes: dict[Home, list[tuple[LogFiles, int]]] = {}
    for log, offset in cuts:
        homes.setdefault(log._home, []).append((log, offset))
    failed: dict[LogFiles, BrokerError] = {}
    for home, of_home in homes.items():
        try:
            home.before_truncations(of_home)
        except OSError as error:
            failure = of_home[0][0].storage_error(error)
            failed |= dict.fromkeys([log for log, _ in of_home], failure)
    return failed


class TruncatableLog(LogFiles):
    """The files of a log, which can be cut."""

    __slots__ = ()

    @property
    def has_unsynced_names(self) -> bool:
        """Whether a power loss might bring segments back that are gone."""
        return self._sync.has_new_names

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on; say whether there was anything."""
        if offset >= self.end_offset:
            self._epochs.truncate_from_end(self.end_offset)
            return False
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return True
        keep = bisect_right(self._bases, offset)
        start_offset = min(self.start_offset, offset)
        try:
            producers = self._producers_at(start_offset, offset)
            self._segments[keep - 1].locate(offset)  # opens what is to be cut, should descriptors be short
            self._home.before_truncations([(self, offset)])
        except OSError as error:
            raise self.storage_error(error) from error
        try:
            self._remove_last(len(self._segments) - keep)
            self._segments[-1].truncate_to(offset)
            self._snapshots.remove_outside(start_offset, offset)
        except OSError as error:
            self._home.fail(error)  # L12
            raise self.storage_error(error) from error
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.start_offset = start_offset
        self._epochs.truncate_from_end(offset)
        self._producers = producers
        self._sync.truncated()
        self._activate(self._segments[-1])
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and go on at `offset`."""
        try:
            self._home.before_truncations([(self, offset)])
        except OSError as error:
            raise self.storage_error(error) from error
        failure: OSError | None = None
        segment = Segment.blank(self._disk, self.path, offset)  # should its files not come now, they come later
        try:
            self._remove_last(len(self._segments) - 1)
            self._segments[0].remove()
            self._snapshots.remove_outside(offset, offset)
        except OSError as error:
            self._home.fail(error)  # L12
            raise self.storage_error(error) from error
        try:
            segment = Segment.create(self._disk, self.path, offset)
        except OSError as error:
            failure = error
        self._segments = [segment]
        self._bases = [offset]
        self.start_offset = self.end_offset = self.recovery_point = offset
        self._epochs.clear()
        self._producers.clear(offset)
        self._sync.truncated()
        self._sync.created(segment.paths()[1:])
        self._activate(segment)
        if failure is not None:
            raise self.storage_error(failure) from failure

    def _remove_last(self, count: int) -> None:
        """Remove the last `count` segments, the newest first."""
        for _ in range(count):
            segment = self._segments[-1]
            segment.remove()
            self._snapshots.remove(segment.base_offset)
            del self._segments[-1]
            del self._bases[-1]

    def _producers_at(self, start_offset: int, offset: int) -> Producers:
        """Tell from snapshots and batches which producers the log will have when it is cut at `offset`."""
        if self.rewound is not None and self.rewound.fits(offset, self.end_offset):
            return self.rewound.producers
        producers = Producers(offset)
        if self._producers.entries:  # without producers before the cut there are none after it; nothing is read
            self._snapshots.remove_outside(start_offset, self.end_offset)
            self._report(load_newest(producers, self._snapshots, start_offset, offset))
            replay(producers, self._segments, offset)
        return producers

    def rewind_to(self, offset: int) -> Rewind | None:
        """Plan what a cut at `offset` has to read, so that a thread may do so; None where nothing has to be read."""
        if not self._bases[0] <= offset < self.end_offset or not self._producers.entries:
            return None
        producers, start_offset = Producers(offset), min(self.start_offset, offset)
        try:
            self._snapshots.remove_outside(start_offset, self.end_offset)
            self._report(load_newest(producers, self._snapshots, start_offset, offset))
            return plan(self._disk, self.path, producers, self._segments, offset, self.end_offset)
        except OSError as error:
            raise self.storage_error(error) from error
