"""Snapshots: checkpoint files named after the end offset and epoch of the log they stand for.

S1  A snapshot has its name only once it is whole and on disk; until then it is a `.part` that nobody reads.
S2  The newest snapshot that is sound is never removed.
S3  Below the oldest snapshot that is kept, the log may be cut; above it, it may not.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.metadata.content import records_of
from ottla.metadata.image import Image
from ottla.quorum.checkpoint import Checkpoint, checkpoint_batches, read_checkpoint
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voters
from ottla.wire.message import Message
from ottla.world.disk import Disk, File

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEFTOVER = re.compile(r"\d{20}-\d{10}\.checkpoint\.(part|deleted)")


class Snapshots:
    """The snapshots in a directory, the oldest first."""

    __slots__ = ("_directory", "_disk", "ids")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self.ids: list[SnapshotId] = []
        for name in disk.list(directory):
            if match := _NAME.fullmatch(name):
                self.ids.append(SnapshotId(int(match[1]), int(match[2])))
            elif _LEFTOVER.fullmatch(name):
                disk.remove(f"{directory}/{name}")
        self.ids.sort()

    def path(self, id: SnapshotId) -> str:
        """Where a snapshot lies."""
        return f"{self._directory}/{id.file_name}"

    def read(self, id: SnapshotId, take: Callable[[Message], object]) -> Checkpoint:
        """Hand every record of a snapshot over, and return what else it holds; MetadataError when it is damaged."""
        return read_checkpoint(self._disk.read_bytes(self.path(id)), self.path(id), take)

    def read_piece(self, id: SnapshotId, position: int, size_bytes_max: int) -> bytes:
        """A piece of a snapshot's file."""
        file = self._disk.open(self.path(id))
        try:
            return bytes(file.read(position, min(size_bytes_max, max(file.size - position, 0))))
        finally:
            file.close()

    def size_bytes(self, id: SnapshotId) -> int:
        """The size of a snapshot's file."""
        return self._disk.size(self.path(id))

    def modified_ms(self, id: SnapshotId) -> int:
        """When a snapshot was written."""
        return self._disk.modified_ms(self.path(id))

    def begin(
        self, image: Image, *, kraft_version: int, voters: Voters | None, now_ms: int
    ) -> "SnapshotWriter":
        """Start writing the snapshot of `image`."""
        return SnapshotWriter(
            self._disk, self, image, kraft_version=kraft_version, voters=voters, now_ms=now_ms
        )

    def finish(self, writer: "SnapshotWriter") -> None:
        """Give a snapshot that is whole and synced its name."""
        writer.file.close()
        self._disk.rename(writer.file.path, self.path(writer.id))
        self._disk.sync_dir(self._directory)
        self.ids.append(writer.id)
        self.ids.sort()

    def adopt(self, id: SnapshotId, file: File) -> None:
        """Give a snapshot that was fetched, and is whole and synced, its name."""
        file.close()
        self._disk.rename(file.path, self.path(id))
        self._disk.sync_dir(self._directory)
        if id not in self.ids:
            self.ids.append(id)
            self.ids.sort()

    def discard(self, id: SnapshotId) -> None:
        """Throw away a snapshot that is not sound, before the log goes by what is left."""
        self._disk.remove(self.path(id))
        self.ids.remove(id)
        self._disk.sync_dir(self._directory)

    def remove_before(self, id: SnapshotId) -> None:
        """Remove all that are older than this one."""
        while self.ids and self.ids[0] < id:
            self._disk.remove(self.path(self.ids[0]))
            del self.ids[0]

    def remove_oldest(self) -> None:
        """Remove the oldest snapshot; the last one stays."""
        if len(self.ids) > 1:
            self._disk.remove(self.path(self.ids[0]))
            del self.ids[0]


class SnapshotWriter:
    """A snapshot on its way to disk. An image never changes, so it can be written while the cluster goes on."""

    __slots__ = ("_batches", "file", "id")

    def __init__(
        self,
        disk: Disk,
        snapshots: Snapshots,
        image: Image,
        *,
        kraft_version: int,
        voters: Voters | None,
        now_ms: int,
    ) -> None:
        self.id = SnapshotId(image.offset + 1, image.epoch)
        path = f"{snapshots.path(self.id)}.part"
        disk.remove(path)
        self.file: File = disk.open(path)
        self._batches: Iterator[bytearray] = checkpoint_batches(
            records_of(image),
            metadata_version=image.features.metadata_version,
            epoch=image.epoch,
            now_ms=now_ms,
            contained_ms=image.timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        )

    def step(self) -> bool:
        """Write one more batch; False once all are written."""
        batch = next(self._batches, None)
        if batch is None:
            return False
        self.file.append(batch)
        return True
