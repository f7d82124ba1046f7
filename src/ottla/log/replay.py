"""Producer state from batches: what an append would have remembered, told again after a restart.

Replication's rules hold here: what stands in the log was admitted once, so nothing is refused.
"""

from collections.abc import Sequence

from ottla.log.producer_snapshot import SnapshotError
from ottla.log.producer_state import CompletedTransaction, Producers
from ottla.log.segment import Header, Segment
from ottla.log.snapshots import Snapshots
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import CONTROL, LOG_OVERHEAD, TRANSACTIONAL, read_control_batch
from ottla.wire.control import ControlType, read_control
from ottla.wire.errors import ProtocolError
from ottla.world.disk import Bytes

_SHORT_BYTES = 16 << 10


class Marker:
    """The end of a transaction, as its control record says it."""

    __slots__ = ("aborted", "coordinator_epoch", "timestamp")

    def __init__(self, aborted: bool, coordinator_epoch: int, timestamp: int) -> None:
        self.aborted = aborted
        self.coordinator_epoch = coordinator_epoch
        self.timestamp = timestamp


def read_marker(batch: Bytes, at: int = 0) -> Marker | None:
    """Return what a control batch says of a transaction; None when cleaning emptied it, or it is of another kind."""
    records = read_control_batch(batch, at)
    if not records:
        return None
    control = read_control(records[0])
    if control is None or control.type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    coordinator_epoch: int = control.message.coordinator_epoch  # type: ignore[union-attr]
    return Marker(control.type is ControlType.ABORT, coordinator_epoch, records[0].timestamp)


def apply_batch(
    producers: Producers, header: Header, batch: Bytes, at: int = 0
) -> CompletedTransaction | None:
    """Take a batch that stands in the log into account; return the transaction it ends, if any."""
    producer_id, attributes = header[9], header[5]
    if producer_id < 0:
        return None
    last_offset = header[0] + header[6]
    if attributes & CONTROL:
        marker = read_marker(batch, at)
        if marker is None:
            return None
        return producers.complete(
            producer_id,
            header[10],
            marker.coordinator_epoch,
            last_offset,
            marker.timestamp,
            aborted=marker.aborted,
        )
    transactional = bool(attributes & TRANSACTIONAL)
    producers.record(producer_id, header[10], header[11], header[0], last_offset, header[8], transactional)
    return None


def aborted_by(completed: CompletedTransaction, producers: Producers) -> AbortedTransaction:
    """Return the index entry of a transaction that has just been aborted."""
    stable = producers.stable_after(completed)
    return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def aborted_in(segment: Segment, producers: Producers) -> list[AbortedTransaction]:
    """Return the transactions aborted in a segment, given the producers as they were where it begins."""
    found: list[AbortedTransaction] = []
    for position, header in segment.headers():
        if header[9] < 0:
            continue
        is_marker = header[5] & CONTROL
        batch = segment.file.read(position, header[1] + LOG_OVERHEAD) if is_marker else b""
        try:
            completed = apply_batch(producers, header, batch)
        except ProtocolError:
            continue
        if completed is not None and completed.aborted:
            found.append(aborted_by(completed, producers))
    return found


def replay(producers: Producers, segments: Sequence[Segment], end_offset: int) -> None:
    """Bring producer state from where it stands to `end_offset`, reading headers, and records of markers alone."""
    begin = producers.end_offset
    for at, segment in enumerate(segments):
        following = segments[at + 1].base_offset if at + 1 < len(segments) else None
        if following is not None and following <= begin:
            continue
        if segment.base_offset >= end_offset:
            break
        found = segment.locate(begin)
        if found is None:
            continue
        replay_from(producers, segment, found[0], end_offset)
    producers.end_offset = end_offset


def replay_from(producers: Producers, segment: Segment, position: int, end_offset: int) -> None:
    """Take the batches of a segment into account from `position` on, up to `end_offset`."""
    for at, header in segment.headers(position):
        if header[0] + header[6] >= end_offset:
            break
        if header[9] >= 0:
            batch = b""
            if header[5] & CONTROL:
                batch = segment.file.read(at, header[1] + LOG_OVERHEAD)
            try:
                apply_batch(producers, header, batch)
            except ProtocolError:
                continue


def is_short(segments: Sequence[Segment]) -> bool:
    """Say whether reading a log from its beginning takes no longer than reading a snapshot."""
    return sum(segment.file.size for segment in segments) <= _SHORT_BYTES


def load_newest(producers: Producers, snapshots: Snapshots, start_offset: int, offset: int) -> list[str]:
    """Load the newest good snapshot not above `offset`; bad ones are removed and named in the answer."""
    bad: list[str] = []
    while (newest := snapshots.newest(offset)) is not None:
        try:
            producers.load(snapshots.read(newest), newest)
            return bad
        except SnapshotError as error:
            bad.append(f"{snapshots.path(newest)}: {error}")
            snapshots.remove(newest)
    producers.clear(start_offset)
    return bad
