"""The metadata log and its snapshots, as Raft reads them."""

from collections.abc import Callable

from ottla.log.log import Log
from ottla.metadata.error import MetadataError
from ottla.metadata.frame import decode
from ottla.quorum.snapshots import Snapshots
from ottla.raft.log_view import Buffer
from ottla.raft.snapshot import SnapshotId
from ottla.wire.batch import Batch, read_records
from ottla.wire.control import read_control
from ottla.wire.errors import BrokerError, ProtocolError


class DiskView:
    """Bytes of the log and of snapshots, for those who fetch them."""

    __slots__ = ("_log", "_refused", "_snapshots", "_warn")

    def __init__(self, log: Log, snapshots: Snapshots, warn: Callable[[str], None]) -> None:
        self._log = log
        self._warn = warn
        self._refused = 0
        self._snapshots = snapshots

    def read(self, offset: int, size_bytes_max: int) -> Buffer:
        """Whole batches from the one that begins at `offset` on; at least that one, if there is one.

        BrokerError says why they cannot be read.
        """
        try:
            return self._log.read(offset, size_bytes_max, self._log.end_offset)
        except OSError as error:
            raise self._log.storage_error(error) from error

    def check(self, data: Buffer, position: int) -> None:
        """Raise ProtocolError for a batch of the leader's with a record that could not be read back.

        Once it stood in the log, this node could neither go on nor start again.
        """
        batch = Batch.parse(data, position)
        try:
            for record in read_records(data, position):
                if not batch.base_offset <= record.offset < batch.end_offset:
                    raise ProtocolError(f"a record has the offset {record.offset}, outside of its batch")
                if batch.is_control:
                    read_control(record)
                else:
                    decode(record.value or b"")
        except (ProtocolError, BrokerError, MetadataError) as error:
            self._refused += 1
            if self._refused & (self._refused - 1) == 0:  # it is sent again and again
                self._warn(
                    f"{self._log.path}: the leader sent a batch at offset {batch.base_offset} that cannot be read, and "
                    f"it was not appended ({self._refused} so far): {error}"
                )
            raise ProtocolError(str(error)) from error

    def snapshot_size(self, id: SnapshotId) -> int | None:
        """The size of a snapshot; None when it is gone."""
        try:
            return self._snapshots.size_bytes(id) if id in self._snapshots.ids else None
        except FileNotFoundError:
            return None

    def read_snapshot(self, id: SnapshotId, position: int, size_bytes_max: int) -> Buffer:
        """A piece of a snapshot, cut anywhere. BrokerError says why it cannot be read."""
        try:
            return self._snapshots.read_piece(id, position, size_bytes_max)
        except OSError as error:
            raise self._log.storage_error(error) from error
