"""The producer snapshot files of one log, by the offset they were taken at.

There is one where each segment begins, so that a segment can be recovered by itself, and one at the end of the log
after a clean stop. Others are strays, of which only the newest is of use.
"""

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable

from ottla.log import names
from ottla.log.producer_snapshot import SnapshotEntry, SnapshotError, decode_snapshot, encode_snapshot
from ottla.world.disk import Disk


class Snapshots:
    """Which snapshot files there are."""

    __slots__ = ("_directory", "_disk", "offsets")

    def __init__(self, disk: Disk, directory: str, offsets: Collection[int] = ()) -> None:
        self._disk = disk
        self._directory = directory
        self.offsets = sorted(offsets)

    def path(self, offset: int) -> str:
        """Return the name of the file for an offset."""
        return f"{self._directory}/{names.segment_stem(offset)}{names.SNAPSHOT}"

    def newest(self, offset: int) -> int | None:
        """Return the offset of the newest snapshot not above `offset`."""
        at = bisect_right(self.offsets, offset)
        return self.offsets[at - 1] if at else None

    def read(self, offset: int) -> list[SnapshotEntry]:
        """Return a snapshot's content, or raise SnapshotError."""
        try:
            return decode_snapshot(self._disk.read_bytes(self.path(offset)))
        except FileNotFoundError:
            raise SnapshotError("the file is gone") from None

    def take(self, offset: int, entries: list[SnapshotEntry]) -> str | None:
        """Write a snapshot, not yet synced, and return its path; None when there is one already."""
        if self.newest(offset) == offset:
            return None
        path = self.path(offset)
        self._disk.remove(path)
        file = self._disk.open(path)
        try:
            file.append(encode_snapshot(entries))
        except OSError:
            self._disk.remove(path)
            raise
        finally:
            file.close()
        insort(self.offsets, offset)
        return path

    def remove(self, offset: int) -> None:
        """Remove a snapshot, if there is one. An OSError leaves it known, so that it goes another time."""
        if offset in self.offsets:
            self._disk.remove(self.path(offset))
            self.offsets.remove(offset)

    def remove_all(self, offsets: Iterable[int]) -> None:
        """Remove several snapshots; one that cannot be removed keeps no other."""
        failure: OSError | None = None
        for offset in offsets:
            try:
                self.remove(offset)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def remove_outside(self, start_offset: int, end_offset: int) -> None:
        """Remove snapshots that no longer describe a place in the log."""
        for offset in [known for known in self.offsets if known <= start_offset or known > end_offset]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Remove snapshots where no segment begins, except the newest when it is newer than any segment."""
        bases = set(base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        if strays and (not bases or strays[-1] > max(bases)):
            strays.pop()
        for offset in strays:
            self.remove(offset)

    def move(self, directory: str) -> None:
        """Follow a renamed directory."""
        self._directory = directory
