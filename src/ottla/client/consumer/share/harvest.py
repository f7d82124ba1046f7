"""Makes records of what a share fetch acquired.

H1  Of the batches that come, only the acquired offsets are ours; the others are somebody else's, or nobody's.
H2  A batch that cannot be read is rejected, a record that a deserializer cannot read is released. Either is told to the
    application in its place among the records.
"""

from collections.abc import Iterable, Sequence

from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.objects import records_of
from ottla.client.consumer.parcel import Decode
from ottla.client.consumer.share.acknowledgement import GAP, AcknowledgeType, Acks
from ottla.client.errors import ClientError
from ottla.client.record import Record
from ottla.wire.batch import scan
from ottla.wire.compression import Buffer
from ottla.wire.errors import BrokerError, ProtocolError

Acquired = Sequence[tuple[int, int, int]]


class Piece:
    """Some records in a row with what is already to be said of their offsets, and perhaps an error in their stead."""

    __slots__ = ("acks", "fault", "records")

    def __init__(
        self, records: list[Record], acks: Acks | None = None, fault: ClientError | None = None
    ) -> None:
        self.records = records
        self.acks: Acks = {} if acks is None else acks
        self.fault = fault


def pieces_of(chunk: Chunk, acquired: Acquired, decode: Decode | None) -> list[Piece]:
    """Return the acquired records, in order, and the errors among them."""
    counts = {offset: count for first, last, count in acquired for offset in range(first, last + 1)}
    pieces: list[Piece] = []
    waiting = dict(counts)
    start = 0
    while True:
        found, next_offset, fault = records_of(chunk._replace(start_offset=start))
        mine = [record for record in found if record.offset in waiting]
        for record in mine:
            del waiting[record.offset]
        pieces += _decoded(_counted(mine, counts), decode)
        if fault is None:
            break
        start = _end_of(chunk.data, next_offset)
        rejected = {
            offset: int(AcknowledgeType.REJECT) for offset in waiting if next_offset <= offset < start
        }
        for offset in rejected:
            del waiting[offset]
        pieces.append(Piece([], rejected, fault))
        if start <= next_offset:
            break
    if waiting:
        pieces.append(Piece([], dict.fromkeys(waiting, GAP)))
    return pieces


def _counted(records: Iterable[Record], counts: dict[int, int]) -> list[Record]:
    new = tuple.__new__
    return [new(Record, (*record[:9], counts[record.offset])) for record in records]


def _decoded(records: list[Record], decode: Decode | None) -> list[Piece]:
    if decode is None or not records:
        return [Piece(records)] if records else []
    pieces: list[Piece] = []
    while records:
        try:
            done = decode(records)
            pieces.append(Piece(done))
            records = records[len(done) :]
        except ClientError as fault:
            pieces.append(Piece([], {records[0].offset: int(AcknowledgeType.RELEASE)}, fault))
            records = records[1:]
    return pieces


def _end_of(data: Buffer, offset: int) -> int:
    """Return the offset behind the batch that an offset is in; the same if it is in none that can be made out."""
    try:
        for _, batch in scan(data):
            if batch.last_offset >= offset:
                return batch.end_offset
    except (ProtocolError, BrokerError):
        pass
    return offset
