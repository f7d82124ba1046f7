"""Makes records from the batches of a share fetch.

H1  Only the acquired offsets of the batches belong to this consumer.
H2  An invalid batch is rejected, and a record that a deserializer cannot read is released. The application gets the
    error in the order of the records.
"""

from collections.abc import Iterable, Sequence

from ottla.client.consumer.completed_fetch import Deserialize
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.record_objects import records_of
from ottla.client.consumer.share.acknowledgement import GAP, AcknowledgeType, Acks
from ottla.client.errors import ClientError
from ottla.client.record import Record
from ottla.wire.batch import scan
from ottla.wire.compression import Buffer
from ottla.wire.errors import BrokerError, ProtocolError

AcquiredRanges = Sequence[tuple[int, int, int]]


class AcquiredRecords:
    """Consecutive records with the acknowledgements that are already known, or an error instead of records."""

    __slots__ = ("acks", "fault", "records")

    def __init__(
        self, records: list[Record], acks: Acks | None = None, fault: ClientError | None = None
    ) -> None:
        self.records = records
        self.acks: Acks = {} if acks is None else acks
        self.fault = fault


def acquired_records_of(
    fetched: FetchedBatches, acquired: AcquiredRanges, decode: Deserialize | None
) -> list[AcquiredRecords]:
    """Return the acquired records, in order, and the errors among them."""
    counts = {offset: count for first, last, count in acquired for offset in range(first, last + 1)}
    acquired_records: list[AcquiredRecords] = []
    waiting = dict(counts)
    start = 0
    while True:
        found, next_offset, fault = records_of(fetched._replace(start_offset=start))
        mine = [record for record in found if record.offset in waiting]
        for record in mine:
            del waiting[record.offset]
        acquired_records += _decoded(_counted(mine, counts), decode)
        if fault is None:
            break
        start = _end_of(fetched.data, next_offset)
        rejected = {
            offset: int(AcknowledgeType.REJECT) for offset in waiting if next_offset <= offset < start
        }
        for offset in rejected:
            del waiting[offset]
        acquired_records.append(AcquiredRecords([], rejected, fault))
        if start <= next_offset:
            break
    if waiting:
        acquired_records.append(AcquiredRecords([], dict.fromkeys(waiting, GAP)))
    return acquired_records


def _counted(records: Iterable[Record], counts: dict[int, int]) -> list[Record]:
    new = tuple.__new__
    return [new(Record, (*record[:9], counts[record.offset])) for record in records]


def _decoded(records: list[Record], decode: Deserialize | None) -> list[AcquiredRecords]:
    if decode is None or not records:
        return [AcquiredRecords(records)] if records else []
    acquired_records: list[AcquiredRecords] = []
    while records:
        try:
            done = decode(records)
            acquired_records.append(AcquiredRecords(done))
            records = records[len(done) :]
        except ClientError as fault:
            acquired_records.append(
                AcquiredRecords([], {records[0].offset: int(AcknowledgeType.RELEASE)}, fault)
            )
            records = records[1:]
    return acquired_records


def _end_of(data: Buffer, offset: int) -> int:
    """Return the end offset of the batch with an offset, or the same offset if no batch is found."""
    try:
        for _, batch in scan(data):
            if batch.last_offset >= offset:
                return batch.end_offset
    except (ProtocolError, BrokerError):
        pass
    return offset
