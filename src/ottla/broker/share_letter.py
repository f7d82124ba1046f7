"""A dead letter as records: what is written to a group's dead-letter topic of records that it gave up (KIP-1191).

Every record that is given up becomes one, which says by its headers where it was and why it was given up. When the
group wants copies it has the key, the value and the headers of the original as well, if that can be read and fits, and
its batch holds no more than 16 MB and 65,536 records.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.partition.table import PartitionTable
from ottla.share.effects import Cause, DeadLetter
from ottla.wire.batch import BATCH_HEADER_SIZE, read_records, scan
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.record import Headers, Record, encode_records

# Of a batch that is opened for copies of its records, on the loop; one with more has letters without copies.
_ORIGINAL_BYTES_MAX = 16 << 20
_ORIGINAL_RECORDS_MAX = 1 << 16

_CAUSES = {
    Cause.REJECTED: b"Offset rejected by client.",
    Cause.TRIED_TOO_OFTEN: b"Offset delivery count exceeded the threshold.",
}


class Parcel(NamedTuple):
    """Letters that become records: from this offset on, with copies or without, and the name of their topic."""

    letter: DeadLetter
    start_offset: int
    topic: str
    copies: bool


def context(letter: DeadLetter, topic: str, offset: int) -> Headers:
    """Return the headers that say where a record was, and why it was given up."""
    return (
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.partition", b"%d" % letter.partition),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", letter.group_id.encode()),
        ("__dlq.errors.delivery.count", b"%d" % letter.delivery_count),
        ("__dlq.errors.message", _CAUSES[letter.cause]),
    )


def pack(
    parcels: Iterator[Parcel], originals: "Originals", size_bytes_max: int, now: int
) -> tuple[list[Record], list[tuple[DeadLetter, int]]]:
    """Return the records of as many letters as fit into one batch, at least one, and how far each letter got."""
    records: list[Record] = []
    reached: list[tuple[DeadLetter, int]] = []
    left = size_bytes_max - BATCH_HEADER_SIZE
    for parcel in parcels:
        letter, end_offset = parcel.letter, parcel.start_offset
        for offset in range(parcel.start_offset, letter.end_offset):
            about = context(letter, parcel.topic, offset)
            record = Record(len(records), now, None, None, about)
            original = originals.find(letter, offset) if parcel.copies else None
            if original is not None:
                headers = (*original.headers, *about)
                copy = record._replace(key=original.key, value=original.value, headers=headers)
                if _size(copy) <= size_bytes_max - BATCH_HEADER_SIZE:
                    record = copy
            size = _size(record)
            if size > left and records:
                break
            left -= size
            records.append(record)
            end_offset = offset + 1
        if end_offset > parcel.start_offset:
            reached.append((letter, end_offset))
        if end_offset < letter.end_offset:
            break
    return records, reached


def _size(record: Record) -> int:
    return len(encode_records([record], 0, record.timestamp)[0])


class Originals:
    """Records as they are in the logs of this broker. The batch read last is remembered, for neighbours are."""

    __slots__ = ("_end_offset", "_place", "_records", "_start_offset", "_table")

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self._place: tuple[bytes, int] | None = None
        self._start_offset = self._end_offset = 0
        self._records: dict[int, Record] = {}

    def find(self, letter: DeadLetter, offset: int) -> Record | None:
        """Return a record; None when there is none, or it cannot be read any more."""
        if self._place != (letter.topic_id, letter.partition) or not (
            self._start_offset <= offset < self._end_offset
        ):
            self._read(letter, offset)
        return self._records.get(offset)

    def forget(self) -> None:
        """Keep nothing in memory."""
        self._place = None
        self._records = {}

    def _read(self, letter: DeadLetter, offset: int) -> None:
        self._place = letter.topic_id, letter.partition
        self._start_offset, self._end_offset, self._records = offset, offset + 1, {}
        try:
            partition = self._table.by_id(*self._place)
            try:
                data = partition.log.read(offset, 1, partition.high_watermark)
            except OSError as error:
                partition.log.storage_error(error)
                return
            for position, batch in scan(data):
                self._end_offset = batch.end_offset
                if not batch.is_control and batch.record_count <= _ORIGINAL_RECORDS_MAX:
                    found = read_records(data, position, size_bytes_max=_ORIGINAL_BYTES_MAX)
                    self._records = {record.offset: record for record in found}
                return
        except (BrokerError, ProtocolError):
            return
