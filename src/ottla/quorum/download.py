"""A snapshot of the leader's on its way to our disk, piece by piece.

S1  It has its name only once it is whole, synced and sound (V4 of `driver.py`).
S2  One that cannot be kept or read back is fetched again, unless the disk is to blame: then OSError says so (V7, V8).

    keep(first piece) --> keep(piece) ... --> keep(last piece) --> sound: Received
                                                             +--> Spoiled, and gone
"""

from collections.abc import Callable

from ottla.log.files import TRY_AGAIN
from ottla.log.own_fault import Bugs, is_own_fault
from ottla.metadata.error import MetadataError
from ottla.quorum.snapshots import Snapshots
from ottla.raft.event import Received, Spoiled
from ottla.raft.snapshot import Chunk
from ottla.world.disk import Disk, File


class SnapshotDownload:
    """The file that a snapshot is written to until it is whole. Only one takes room on the disk."""

    def __init__(self, disk: Disk, snapshots: Snapshots, bugs: Bugs, warn: Callable[[str], None]) -> None:
        self._disk = disk
        self._snapshots = snapshots
        self._bugs = bugs
        self._warn = warn
        self._part: File | None = None

    def close(self) -> None:
        """Give the file up."""
        if self._part is not None:
            self._part.close()
            self._part = None

    def keep(self, chunk: Chunk) -> Received | Spoiled | None:
        """Write a piece; return what Raft has to hear once that was the last, or the snapshot cannot be had."""
        try:
            self._write(chunk)
        except OSError as error:
            if not is_own_fault(error):
                raise
            self._bugs.report(error)
            return Spoiled(chunk.id)
        return self._read_back(chunk) if chunk.is_last else None

    def _write(self, chunk: Chunk) -> None:
        if chunk.position == 0:
            path = f"{self._snapshots.path(chunk.id)}.part"
            if self._part is not None:  # of a download that was given up
                self._part.close()
                self._disk.remove(self._part.path)
            self._disk.remove(path)
            self._part = self._disk.open(path)
        assert self._part is not None, "a snapshot is fetched from its beginning"
        self._part.append(chunk.data)
        if chunk.is_last:
            part, self._part = self._part, None
            part.sync()
            self._snapshots.adopt(chunk.id, part)

    def _read_back(self, chunk: Chunk) -> Received | Spoiled:
        """See whether it is sound: its records are folded once it is installed."""
        try:
            checkpoint = self._snapshots.read(chunk.id, lambda record: None)
        except Exception as error:  # S2
            is_ours = isinstance(error, OSError) and is_own_fault(error)
            if isinstance(error, OSError) and not is_ours and error.errno not in TRY_AGAIN:
                raise
            if is_ours or not isinstance(error, (OSError, MetadataError)):
                self._bugs.report(error)
            self._warn(f"{error}; it is fetched again")
            self._snapshots.discard(chunk.id)
            return Spoiled(chunk.id)
        return Received(chunk.id, checkpoint.kraft_version, checkpoint.voters)
