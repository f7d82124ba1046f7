"""Makes record objects from the batches of a fetch.

Where there was a C compiler when Ottla was installed, `packed` does it. Else few records are read one after the other
(`wire.record`), and from COLUMNS_MIN on their fields are found for all of them together (`wire.columns`), and the
objects are put together by `map` and `zip`, with next to no Python run for a record; that needs numpy, without which
the other way does it all.

O1  All three ways give the same records.
O2  Objects are made when they are needed (`ColumnRecords`), for one poll at a time. So they stay in the processor's
    cache, and the garbage collector has few objects to examine.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.fetched_batches import (
    BATCH_BYTES_MAX,
    FetchedBatches,
    ReadableBatches,
    read_batches,
)
from ottla.client.consumer.packed_records import PackedRecords, pack_records
from ottla.client.errors import ClientError, RecordTooLarge
from ottla.client.record import Record
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.compression import Buffer
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Headers, decode_records

if TYPE_CHECKING:
    from ottla.wire.columns import Columns, Flags, Numbers

COLUMNS_MIN = 128


class DecodedRecords(NamedTuple):
    """The records of fetched batches, the next offset, and the error of the batch there."""

    records: list[Record]
    next_offset: int
    fault: ClientError | None


class LazyRecords(NamedTuple):
    """The same with records that are made when they are needed."""

    rows: "list[Record] | ColumnRecords | PackedRecords"
    next_offset: int
    fault: ClientError | None
    is_partial: bool  # whether there are more batches, from `next_offset` on


def records_of(fetched: FetchedBatches) -> DecodedRecords:
    """Return the records that the application may read, from `start_offset` on."""
    records: list[Record] = []
    while True:
        rows, next_offset, fault, is_partial = lazy_records_of(fetched)
        records += rows[:]
        if not is_partial:
            return DecodedRecords(records, next_offset, fault)
        fetched = fetched._replace(start_offset=next_offset)


def lazy_records_of(fetched: FetchedBatches) -> LazyRecords:
    """Return the same records as a sequence that makes slices on demand. All of them are known to be valid."""
    readable = read_batches(fetched, BATCH_BYTES_MAX)
    if isinstance(readable.fault, RecordTooLarge) and len(fetched.data) > BATCH_BYTES_MAX:
        readable = read_batches(fetched, None, 1)  # uncompressed batches are already in memory
    try:
        rows = _read(readable)
    except ProtocolError:
        readable.keep_readable(lambda batch, body: _one_by_one(fetched, [batch], [body]))
        rows = _read(readable)
    return LazyRecords(rows, readable.next_offset, readable.fault, readable.is_partial)


def _read(readable: ReadableBatches) -> "list[Record] | ColumnRecords | PackedRecords":
    fetched, batches = readable.fetched, readable.batches
    packed = pack_records(fetched, batches, readable.bodies)
    if packed is not None:
        return packed
    if sum([batch.record_count for batch in batches]) >= COLUMNS_MIN and _numpy_is_here():
        return _by_columns(fetched, batches, readable.bodies)
    records = _one_by_one(fetched, batches, readable.bodies)
    if records and batches[0].base_offset < fetched.start_offset:
        return [record for record in records if record.offset >= fetched.start_offset]
    return records


@cache
def _numpy_is_here() -> bool:
    return find_spec("numpy") is not None


def _one_by_one(fetched: FetchedBatches, batches: Sequence[Batch], bodies: Sequence[Buffer]) -> list[Record]:
    topic, partition, new = fetched.topic, fetched.partition, tuple.__new__
    records: list[Record] = []
    for batch, body in zip(batches, bodies, strict=True):
        count = batch.record_count
        if count < 0:
            raise ProtocolError(f"batch claims {count} records")
        by_broker = batch.attributes & LOG_APPEND_TIME
        append_time_ms = batch.max_timestamp if by_broker else None
        kind = 1 if by_broker else 0
        epoch = batch.partition_leader_epoch
        records += [
            new(Record, (topic, partition, offset, timestamp, key, value, headers, kind, epoch, 0))
            for offset, timestamp, key, value, headers in decode_records(
                bytes(body), count, batch.base_offset, batch.base_timestamp, append_time_ms
            )
        ]
    return records


def _by_columns(
    fetched: FetchedBatches, batches: Sequence[Batch], bodies: Sequence[Buffer]
) -> "ColumnRecords":
    return ColumnRecords(fetched, batches, bodies)


class ColumnRecords:
    """Records whose fields are decoded by columns. Slices make the objects."""

    __slots__ = (
        "_columns",
        "_epochs",
        "_first",
        "_headers",
        "_keys",
        "_kinds",
        "_partition",
        "_topic",
        "_values",
    )

    def __init__(self, fetched: FetchedBatches, batches: Sequence[Batch], bodies: Sequence[Buffer]) -> None:
        from ottla.wire.columns import decode_columns

        columns = decode_columns(batches, bodies)
        counts = [batch.record_count for batch in batches]
        self._topic, self._partition = fetched.topic, fetched.partition
        self._columns = columns
        self._kinds = _spread([1 if batch.attributes & LOG_APPEND_TIME else 0 for batch in batches], counts)
        self._epochs = _spread([batch.partition_leader_epoch for batch in batches], counts)
        self._headers = _headers(columns)
        self._keys, self._values = _nulls(columns.key_nulls), _nulls(columns.value_nulls)
        self._first = int(columns.offsets.searchsorted(fetched.start_offset))

    def __len__(self) -> int:
        return len(self._columns.offsets) - self._first

    def __getitem__(self, wanted: slice) -> list[Record]:
        start, stop, _ = wanted.indices(len(self))
        part = slice(start + self._first, stop + self._first)
        columns = self._columns
        fields = zip(
            repeat(self._topic),
            repeat(self._partition),
            columns.offsets[part].tolist(),
            columns.timestamps[part].tolist(),
            _pieces(columns.data, columns.key_starts[part], columns.key_ends[part], self._keys, part),
            _pieces(columns.data, columns.value_starts[part], columns.value_ends[part], self._values, part),
            repeat(()) if self._headers is None else self._headers[part],
            repeat(self._kinds) if isinstance(self._kinds, int) else self._kinds[part],
            repeat(self._epochs) if isinstance(self._epochs, int) else self._epochs[part],
            repeat(0),
        )
        return list(map(tuple.__new__, repeat(Record), fields))


def _spread(numbers: Sequence[int], counts: Sequence[int]) -> int | list[int]:
    """A batch's number for each of its records; one number where all have the same."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return list(chain.from_iterable(map(repeat, numbers, counts)))


def _nulls(flags: "Flags") -> "Flags | bool":
    """Which of the keys or values are null; one word where it is all or none."""
    return True if flags.all() else flags if flags.any() else False


_EVERYTHING = slice(None)


def _pieces(
    data: bytes, starts: "Numbers", ends: "Numbers", nulls: "Flags | bool", part: slice = _EVERYTHING
) -> Iterable[bytes | None]:
    """The keys or values, None for a null."""
    if nulls is True:
        return repeat(None)
    # The one place where Python runs for each record: `map(data.__getitem__, map(slice, …))` takes a quarter longer.
    pieces: list[bytes | None] = [
        data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    if nulls is not False:
        for index in nulls[part].nonzero()[0].tolist():
            pieces[index] = None
    return pieces


def _headers(columns: "Columns") -> list[Headers] | None:
    """The headers of each record, None where no record has any."""
    if not columns.header_flags.any():
        return None
    from ottla.wire.columns import decode_headers

    data = columns.data
    counts, names, name_ends, values, value_ends, nulls = decode_headers(columns)
    decoded = [
        data[start:end].decode("utf-8", "surrogateescape")
        for start, end in zip(names.tolist(), name_ends.tolist(), strict=True)
    ]
    pairs = tuple(zip(decoded, _pieces(data, values, value_ends, _nulls(nulls)), strict=False))
    stops = counts.cumsum()
    return [pairs[start:stop] for start, stop in zip((stops - counts).tolist(), stops.tolist(), strict=True)]
