"""What of a log still has to reach the device, and from where on recovery would have to look.

Y1  The recovery point moves over a segment's end only once that segment's indexes and the snapshot behind it are
    synced too, and the names of new files with them.
"""

from collections.abc import Iterable

from ottla.log.segment import Segment
from ottla.world.disk import Bytes, Disk, File


class DirectoryNames:
    """The names in a directory, to be synced like a file."""

    __slots__ = ("_disk", "path", "pins", "size")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.pins = 0
        self.size = 0

    def sync(self) -> None:
        """Make new, renamed and removed names durable."""
        self._disk.sync_dir(self.path)

    def rest(self) -> None:
        """Hold nothing open."""

    close = rest

    def append(self, data: Bytes) -> None:
        """Refuse: a directory is not written to."""
        raise IsADirectoryError(self.path)

    def read(self, position: int, size: int) -> bytes:
        """Refuse: a directory is not read from."""
        raise IsADirectoryError(self.path)

    def write_at(self, position: int, data: Bytes) -> None:
        """Refuse: a directory is not written to."""
        raise IsADirectoryError(self.path)

    def truncate(self, size: int) -> None:
        """Refuse: a directory has no size."""
        raise IsADirectoryError(self.path)


class Synchronizer:
    """The files beside the batches that were written since the last sync."""

    __slots__ = ("_beside", "_disk", "_new", "_path", "_settled_at", "_taken", "_under_way", "settled_offset")

    def __init__(self, disk: Disk, path: str, settled_offset: int) -> None:
        self._disk = disk
        self._path = path
        self._beside: list[str] = []
        self._new: list[str] = []
        self._under_way: list[File] = []
        self._taken: tuple[list[str], list[str]] = ([], [])  # by the sync under way: new files, and those beside
        # Up to where indexes, snapshot and epochs have been written.
        self.settled_offset = settled_offset
        self._settled_at: tuple[Segment | None, int] = (None, 0)

    def created(self, paths: list[str]) -> None:
        """A log is new, and so are its files and its directory. They matter once there are records."""
        self._new = paths

    def written(self, paths: Iterable[str | None]) -> None:
        """Files beside the batches are new or have grown."""
        self._beside += [path for path in paths if path is not None]

    def settled(self, segment: Segment, offset: int) -> None:
        """The files beside the batches were brought up to `offset`."""
        self.settled_offset = offset
        self._settled_at = (segment, segment.file.size)

    def settled_position(self, segment: Segment) -> int:
        """Return up to which position of a segment the files beside it were written."""
        return self._settled_at[1] if self._settled_at[0] is segment else 0

    def truncated(self) -> None:
        """What was written beside the batches no longer matches the end of the log."""
        self.settled_offset = -1
        self._settled_at = (None, 0)

    def pending(
        self, segments: list[Segment], active: Segment, recovery_point: int, end_offset: int
    ) -> list[File]:
        """Return what has to be synced for the log to be durable up to `end_offset`."""
        if not self._beside and not self._new and recovery_point >= active.base_offset:
            return [active.file] if recovery_point < end_offset else []
        files: list[File] = []
        for at, segment in enumerate(segments):
            following = segments[at + 1].base_offset if at + 1 < len(segments) else end_offset
            if following > recovery_point and segment.base_offset < end_offset:
                files.append(segment.file)
        if self._new and not files and not self._beside:
            return files
        for path in dict.fromkeys(self._new + self._beside):
            if self._disk.exists(path):
                file = self._disk.open(path, size=0)
                files.append(file)
                self._under_way.append(file)
        files.append(DirectoryNames(self._disk, self._path))
        if self._new:
            files.append(DirectoryNames(self._disk, self._path.rpartition("/")[0]))
        self._taken = self._new, self._beside
        self._beside = []
        self._new = []
        return files

    def not_begun(self) -> None:
        """What `pending` returned was not synced: all of it is still to be."""
        self._new, self._beside = self._taken[0] + self._new, self._taken[1] + self._beside
        self._close()

    def finished(self, end_offset: int, active_base_offset: int) -> int:
        """Close what was opened for the sync, and return up to where the log may count as durable."""
        self._close()
        if self._beside:
            # A roll came between: the files of the segment it ended are not synced yet.
            return min(end_offset, active_base_offset - 1)
        return end_offset

    def _close(self) -> None:
        for file in self._under_way:
            file.close()
        self._under_way.clear()
        self._taken = ([], [])

    def move(self, path: str) -> None:
        """Follow a renamed directory."""
        self._beside = [path + old[len(self._path) :] for old in self._beside]
        self._new = [path + old[len(self._path) :] for old in self._new]
        new, beside = self._taken
        self._taken = (
            [path + old[len(self._path) :] for old in new],
            [path + old[len(self._path) :] for old in beside],
        )
        self._path = path
