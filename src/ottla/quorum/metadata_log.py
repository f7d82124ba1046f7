"""The log `__cluster_metadata-0`: opened, and folded from the newest snapshot on."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.names import PARTITION_METADATA, partition_dir
from ottla.log.segment import Segment
from ottla.metadata.error import MetadataError
from ottla.metadata.fold import Fold
from ottla.metadata.frame import decode
from ottla.quorum.checkpoint import BATCH_BYTES_MAX
from ottla.quorum.snapshots import SnapshotId, Snapshots
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.quorum.voters import Voters
from ottla.wire.batch import crc_ok, read_records, scan
from ottla.wire.control import read_control
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.messages.control import KRaftVersionRecord, VotersRecord
from ottla.wire.uuid import METADATA_TOPIC_ID, uuid_text
from ottla.world.disk import Disk

TOPIC = "__cluster_metadata"
READ_BYTES = 1024 * 1024


class MetadataHome:
    """The home of the metadata log, which is looked after by nobody else."""

    __slots__ = ("_disk", "_fail", "_warn")

    def __init__(self, disk: Disk, warn: Callable[[str], None], fail: Callable[[OSError], None]) -> None:
        self._disk = disk
        self._warn = warn
        self._fail = fail

    def warn(self, text: str) -> None:
        """Tell the operator."""
        self._warn(text)

    def touch(self, segment: Segment) -> None:
        """Let the segment be: there are few."""

    def doom(self, paths: list[str], delay_ms: int) -> None:
        """Remove files at once: nobody reads below a snapshot."""
        for path in paths:
            self._disk.remove(path)

    def fail(self, error: OSError) -> None:
        """Pass on that the disk cannot be trusted."""
        self._fail(error)

    def rest_idle(self) -> None:
        """Have nothing to give back."""

    def draw_below(self, bound: int) -> int:
        """Draw nothing: the log has no jitter."""
        return 0

    def draw_id(self) -> bytes:
        """Draw nothing: the log is never renamed."""
        return METADATA_TOPIC_ID


@dataclass(slots=True)
class LoadedLog:
    """The log with what it says."""

    log: Log
    snapshots: Snapshots
    fold: Fold
    kraft_version: int = 0
    voters: Voters | None = None
    voters_in_log: bool = False  # rather than in the snapshot that formatting left
    bytes_since_snapshot: int = 0


def log_path(settings: QuorumSettings) -> str:
    """Where the log lies."""
    return f"{settings.directory}/{partition_dir(TOPIC, 0)}"


def load(world: Surroundings, settings: QuorumSettings, fail: Callable[[OSError], None]) -> LoadedLog:
    """Open the log and fold all it says, beginning with the newest snapshot that is sound."""
    disk, path = world.disk, log_path(settings)
    disk.make_dirs(path)
    if not disk.exists(f"{path}/{PARTITION_METADATA}"):
        content = f"version: 0\ntopic_id: {uuid_text(METADATA_TOPIC_ID)}"
        disk.write_atomic(f"{path}/{PARTITION_METADATA}", content.encode())
    snapshots = Snapshots(disk, path)
    config = LogConfig(
        segment_bytes=settings.segment_bytes,
        segment_ms=settings.segment_ms,
        max_message_bytes=BATCH_BYTES_MAX,
        retention_bytes=-1,
        retention_ms=-1,
        file_delete_delay_ms=0,
    )
    log = Log(MetadataHome(disk, world.warn, fail), disk, path, TOPIC, 0, config)
    log.open(clean=False, recovery_point=max((id.offset for id in snapshots.ids), default=0))
    loaded = LoadedLog(log, snapshots, Fold())
    _load_snapshot(loaded, world.warn)
    try:
        _replay(loaded)
    except (ProtocolError, BrokerError) as error:
        raise MetadataError(
            f"{path} is damaged at or after offset {loaded.fold.end_offset}: {error}"
        ) from error
    return loaded


def _load_snapshot(loaded: LoadedLog, warn: Callable[[str], None]) -> None:
    log, snapshots = loaded.log, loaded.snapshots
    for id in reversed(snapshots.ids):
        try:
            checkpoint = snapshots.read(id)
            fold = Fold()
            for offset, record in enumerate(checkpoint.records):
                fold.apply(offset, record)
        except MetadataError as error:
            warn(f"{error}; an older snapshot is tried")
            continue
        if id.offset > 0:
            fold.advance(id.offset, id.epoch, checkpoint.timestamp_ms)
        loaded.fold = fold
        loaded.kraft_version, loaded.voters = checkpoint.kraft_version, checkpoint.voters
        loaded.voters_in_log = id.offset > 0
        if id.offset > log.end_offset:
            # The log was lost or cut behind a snapshot that was safe: it goes on where the snapshot ends.
            log.truncate_fully_and_start_at(id.offset)
        _check_coverage(log, id)
        return
    _check_coverage(log, SnapshotId(0, 0))


def _check_coverage(log: Log, id: SnapshotId) -> None:
    if log.start_offset > id.offset:
        raise MetadataError(
            f"{log.path} begins at offset {log.start_offset}, but no sound snapshot says what was before it"
        )


def _replay(loaded: LoadedLog) -> None:
    log, fold = loaded.log, loaded.fold
    offset = fold.end_offset
    while offset < log.end_offset:
        data = bytes(log.read(offset, READ_BYTES, log.end_offset))
        loaded.bytes_since_snapshot += len(data)
        for position, batch in scan(data):
            # What lies below the newest snapshot was not recovered, and is read when that snapshot is damaged.
            if not crc_ok(data, position, batch.size):
                raise ProtocolError(f"the batch at offset {batch.base_offset} fails its checksum")
            records = read_records(data, position)
            if batch.is_control:
                for record in records:
                    control = read_control(record)
                    if control is not None and isinstance(control.message, KRaftVersionRecord):
                        loaded.kraft_version = control.message.kraft_version
                    elif control is not None and isinstance(control.message, VotersRecord):
                        loaded.voters, loaded.voters_in_log = Voters.read(control.message), True
            else:
                for record in records:
                    if record.offset >= offset:
                        fold.apply(record.offset, decode(record.value or b""))
            fold.advance(batch.end_offset, batch.partition_leader_epoch, batch.max_timestamp)
        offset = fold.end_offset
