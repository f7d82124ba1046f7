"""The log `__cluster_metadata-0`: opened, read, and folded as far as it is committed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from ottla.log.config import LogConfig
from ottla.log.files import LogFiles
from ottla.log.log import Log
from ottla.log.names import PARTITION_METADATA, partition_dir
from ottla.log.own_fault import Bugs
from ottla.log.segment import Segment
from ottla.metadata.error import MetadataError
from ottla.metadata.fold import Fold
from ottla.metadata.frame import decode
from ottla.quorum.checkpoint import BATCH_BYTES_MAX, Checkpoint
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.membership import Membership
from ottla.raft.outline import Outline
from ottla.raft.settings import TOPIC
from ottla.raft.snapshot import BOOTSTRAP_ID, SnapshotId
from ottla.raft.voters import NO_VOTERS
from ottla.wire.batch import Batch, crc_ok, read_records, scan
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.uuid import METADATA_TOPIC_ID, uuid_text
from ottla.world.disk import Disk

READ_BYTES = 1024 * 1024


class MetadataHome:
    """The home of the metadata log, which is looked after by nobody else."""

    __slots__ = ("_disk", "_fail", "_warn", "bugs")

    def __init__(self, disk: Disk, warn: Callable[[str], None], fail: Callable[[OSError], None]) -> None:
        self._disk = disk
        self._warn = warn
        self._fail = fail
        self.bugs = Bugs(warn)

    def warn(self, text: str) -> None:
        """Tell the operator."""
        self._warn(text)

    def touch(self, segment: Segment) -> None:
        """Let the segment be: there are few."""

    def doom(self, paths: list[str], delay_ms: int) -> None:
        """Remove files at once: nobody reads below a snapshot."""
        for path in paths:
            self._disk.remove(path)

    def before_truncations(self, cuts: Sequence[tuple[LogFiles, int]]) -> None:
        """Have nothing to lower: recovery begins at the newest snapshot, and what a snapshot covers is never cut."""

    def fail(self, error: OSError) -> None:
        """Pass on that the disk cannot be trusted."""
        self._fail(error)

    def bug(self, error: BaseException) -> None:
        """Report an error that our own argument caused, and go on."""
        self.bugs.report(error)

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
    """The log with what it says: the newest snapshot is folded, and what comes behind it is not.

    How much of that is committed is for the quorum to say; only who votes counts at once.
    """

    log: Log
    snapshots: Snapshots
    fold: Fold
    membership: Membership


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
    loaded = LoadedLog(log, snapshots, Fold(), Membership(settings.voters or NO_VOTERS))
    _load_snapshot(loaded, world.warn)
    for data, position, batch in batches(log, loaded.fold.end_offset, log.end_offset):
        try:
            loaded.membership.read(data, position, batch)
        except (ProtocolError, BrokerError) as error:
            raise _unreadable(log, batch, error) from error
    return loaded


def _load_snapshot(loaded: LoadedLog, warn: Callable[[str], None]) -> None:
    log, snapshots = loaded.log, loaded.snapshots
    for id in reversed(snapshots.ids):
        try:
            fold, checkpoint = _fold_snapshot(snapshots, id)
        except MetadataError as error:
            warn(f"{error}; an older snapshot is tried")
            continue
        loaded.fold = fold
        loaded.membership.load(id.offset - 1, checkpoint.kraft_version, checkpoint.voters)
        if id.epoch > (log.latest_epoch or 0) or id.offset > log.end_offset:
            # The log was lost, or cut behind a snapshot that was safe, or is another than the snapshot's, which is
            # committed: it goes on where the snapshot ends.
            log.truncate_fully_and_start_at(id.offset)
        _check_coverage(log, id)
        return
    _check_coverage(log, BOOTSTRAP_ID)


def _fold_snapshot(snapshots: Snapshots, id: SnapshotId) -> tuple[Fold, Checkpoint]:
    fold, offsets = Fold(), count()
    checkpoint = snapshots.read(id, lambda record: fold.apply(next(offsets), record))
    if id.offset > 0:
        fold.advance(id.offset, id.epoch, checkpoint.timestamp_ms)
    return fold, checkpoint


def _check_coverage(log: Log, id: SnapshotId) -> None:
    if log.start_offset > id.offset:
        raise MetadataError(
            f"{log.path} begins at offset {log.start_offset}, but no sound snapshot says what was before it"
        )


def batches(log: Log, start_offset: int, end_offset: int) -> Iterator[tuple[bytes, int, Batch]]:
    """The batches from `start_offset` up to `end_offset`, each as the bytes it lies in and where; all are sound."""
    offset = start_offset
    while offset < end_offset:
        try:
            data = bytes(log.read(offset, READ_BYTES, end_offset))
            for position, batch in scan(data):
                # What lies below the newest snapshot was not recovered, and is read when that snapshot is damaged.
                if not crc_ok(data, position, batch.size):
                    raise ProtocolError(f"the batch at offset {batch.base_offset} fails its checksum")
                offset = batch.end_offset
                yield data, position, batch
        except (ProtocolError, BrokerError) as error:
            raise MetadataError(f"{log.path} is damaged at or after offset {offset}: {error}") from error


def fold_batches(log: Log, fold: Fold, end_offset: int) -> int:
    """Fold what the log holds up to `end_offset`, and return how many bytes that were."""
    start_offset, size_bytes = fold.end_offset, 0
    for data, position, batch in batches(log, start_offset, end_offset):
        if not batch.is_control:
            try:
                for record in read_records(data, position):
                    if record.offset >= start_offset:
                        fold.apply(record.offset, decode(record.value or b""))
            except (ProtocolError, BrokerError, MetadataError) as error:
                raise _unreadable(log, batch, error) from error
        fold.advance(batch.end_offset, batch.partition_leader_epoch, batch.max_timestamp)
        size_bytes += batch.size
    return size_bytes


def _unreadable(log: Log, batch: Batch, error: Exception) -> MetadataError:
    return MetadataError(
        f"{log.path} cannot be read in the batch at offset {batch.base_offset}: {error}; if this software is older "
        "than what wrote it, start the newer one; else, where other voters have the log, move this directory away, and "
        "the node fetches it from them; the only voter needs a copy of it"
    )


def outline_of(loaded: LoadedLog) -> Outline:
    """The outline of the log, for Raft."""
    log = loaded.log
    return Outline(log.start_offset, log.end_offset, log.epochs, loaded.snapshots.ids)


def install(loaded: LoadedLog, id: SnapshotId) -> Fold:
    """Begin anew with a snapshot of the leader's, behind which the log goes on."""
    fold, _ = _fold_snapshot(loaded.snapshots, id)
    fold.settle()  # whoever follows is told the difference instead
    return fold


def remove_older(loaded: LoadedLog, id: SnapshotId, warn: Callable[[str], None]) -> None:
    """Remove the snapshots that one of the leader's has overtaken; what cannot be removed harms nobody."""
    try:
        loaded.snapshots.remove_before(id)
    except OSError as error:
        warn(f"older snapshots of the metadata stay until the next one comes: {error}")


def not_the_voter(loaded: LoadedLog, settings: QuorumSettings) -> MetadataError:
    """Why a node that nobody else can be asked by may not lead."""
    named = ", ".join(map(str, sorted(loaded.membership.voters.by_id)))
    if not named and loaded.membership.kraft_version:
        return MetadataError(f"{loaded.log.path} is of a dynamic quorum, but does not say who its voters are")
    if not named:
        return MetadataError(
            f"{settings.directory} names no voters, and neither does controller.quorum.voters; "
            "a directory is given its voters when it is formatted for a standalone controller"
        )
    return MetadataError(
        f"node {settings.node_id} with this directory is not a voter of the metadata quorum, or not its only one: "
        f"it has the voters {named}"
    )
