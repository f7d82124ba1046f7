"""The metadata log and its snapshots, as Raft reads them."""

from ottla.log.log import Log
from ottla.quorum.snapshots import Snapshots
from ottla.raft.log_view import Buffer
from ottla.raft.snapshot import SnapshotId


class DiskView:
    """Bytes of the log and of snapshots, for those who fetch them."""

    __slots__ = ("_log", "_snapshots")

    def __init__(self, log: Log, snapshots: Snapshots) -> None:
        self._log = log
        self._snapshots = snapshots

    def read(self, offset: int, size_bytes_max: int) -> Buffer:
        """Whole batches from the one that begins at `offset` on; at least that one, if there is one."""
        return self._log.read(offset, size_bytes_max, self._log.end_offset)

    def snapshot_size(self, id: SnapshotId) -> int | None:
        """The size of a snapshot; None when it is gone."""
        return self._snapshots.size_bytes(id) if id in self._snapshots.ids else None

    def read_snapshot(self, id: SnapshotId, position: int, size_bytes_max: int) -> Buffer:
        """A piece of a snapshot, cut anywhere."""
        return self._snapshots.read_piece(id, position, size_bytes_max)
