"""What of a log still has to reach the device, and from where on recovery would have to look.

Y1  The recovery point moves over a segment's end only once that segment's indexes and the snapshot behind it are
    synced too, and the names of new files with them.
Y2  Names that came or went (by a roll, a truncation, retention) are synced before anything that was written after that
    counts as durable: a loss of power takes no new file away, and brings no removed one back.
Y3  A sync that began before a truncation says nothing of what lies there now: whatever it named is named again.
Y4  What is pinned is open: once a sync has begun in a thread, descriptors that run out do not make it fail.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.log.segment import Segment
from ottla.world.disk import Bytes, Disk, File

if TYPE_CHECKING:
    from ottla.world.held_directory import HeldDirectory


class DirectoryNames:
    """The names in a directory, to be synced like a file; to pin them opens the directory."""

    __slots__ = ("_disk", "_held", "_pins", "path", "size")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.size = 0
        self._pins = 0
        self._held: HeldDirectory | None = None

    @property
    def pins(self) -> int:
        """How many threads are at work on them."""
        return self._pins

    @pins.setter
    def pins(self, count: int) -> None:
        if self._held is None and count > 0:
            self._held = self._disk.hold_dir(self.path)
        self._pins = count
        if count == 0 and self._held is not None:
            held, self._held = self._held, None
            held.close()

    def sync(self) -> None:
        """Make new, renamed and removed names durable."""
        if self._held is not None:
            self._held.sync()
        else:
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

    __slots__ = (
        "_beside",
        "_disk",
        "_has_new_names",
        "_is_void",
        "_new",
        "_path",
        "_settled_at",
        "_taken",
        "_under_way",
        "settled_offset",
    )

    def __init__(self, disk: Disk, path: str, settled_offset: int) -> None:
        self._disk = disk
        self._path = path
        self._beside: list[str] = []
        self._new: list[str] = []
        self._has_new_names = False  # or fewer, or others
        self._under_way: list[File] = []
        # By the sync under way: new files, those beside, and whether names had changed.
        self._taken: tuple[list[str], list[str], bool] = ([], [], False)
        self._is_void = False  # the log was cut since the sync under way began
        # Up to where indexes, snapshot and epochs have been written.
        self.settled_offset = settled_offset
        self._settled_at: tuple[Segment | None, int] = (None, 0)

    def created(self, paths: list[str]) -> None:
        """A log is new, or begins anew, and so do its files and its directory. They matter once there are records."""
        self._new = self._new + paths

    def written(self, paths: Iterable[str | None]) -> None:
        """Files beside the batches are new or have grown."""
        self._beside += [path for path in paths if path is not None]

    def names_changed(self) -> None:
        """Files of the log came, went or were renamed."""
        self._has_new_names = True

    @property
    def has_new_names(self) -> bool:
        """Whether a loss of power might undo a removal, or take a new name away."""
        return self._has_new_names or self._taken[2]

    def settled(self, segment: Segment, offset: int) -> None:
        """The files beside the batches were brought up to `offset`."""
        self.settled_offset = offset
        self._settled_at = (segment, segment.file.size)

    def settled_position(self, segment: Segment) -> int:
        """Return up to which position of a segment the files beside it were written."""
        return self._settled_at[1] if self._settled_at[0] is segment else 0

    def truncated(self) -> None:
        """What was written beside the batches no longer matches the end of the log, and files came or went."""
        self._has_new_names = self._is_void = True
        self.settled_offset = -1
        self._settled_at = (None, 0)

    def pending(
        self, segments: list[Segment], active: Segment, recovery_point: int, end_offset: int
    ) -> list[File]:
        """Return what has to be synced for the log to be durable up to `end_offset`."""
        self._is_void = False
        if (
            not self._beside
            and not self._new
            and not self._has_new_names
            and recovery_point >= active.base_offset
        ):
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
        self._taken = self._new, self._beside, self._has_new_names
        self._beside = []
        self._new = []
        self._has_new_names = False
        return files

    def not_begun(self) -> None:
        """What `pending` returned was not synced: all of it is still to be."""
        new, beside, has_new_names = self._taken
        self._new, self._beside = new + self._new, beside + self._beside
        self._has_new_names = self._has_new_names or has_new_names
        self._close()

    def finished(self, end_offset: int, active_base_offset: int) -> int:
        """Close what was opened for the sync, and return up to where the log may count as durable; -1 for no news."""
        if self._is_void:  # Y3
            self.not_begun()
            return -1
        self._close()
        if self._beside:
            # A roll came between: the files of the segment it ended are not synced yet.
            return min(end_offset, active_base_offset - 1)
        return end_offset

    def _close(self) -> None:
        for file in self._under_way:
            file.close()
        self._under_way.clear()
        self._taken = ([], [], False)

    def move(self, path: str) -> None:
        """Follow a renamed directory."""
        self._beside = [path + old[len(self._path) :] for old in self._beside]
        self._new = [path + old[len(self._path) :] for old in self._new]
        new, beside, has_new_names = self._taken
        self._taken = (
            [path + old[len(self._path) :] for old in new],
            [path + old[len(self._path) :] for old in beside],
            has_new_names,
        )
        self._path = path
