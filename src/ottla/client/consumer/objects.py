"""Records as objects, made from the batches of a fetch.

Few records are read one after the other (`wire.record`). From COLUMNS_MIN on their fields are found for all of them
together (`wire.columns`), and the objects are put together by `map` and `zip`, with next to no Python run for a
record; that needs numpy, without which the other way does it all.

O1  Both ways give the same records.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.chunk import Chunk, Contents, open_chunk
from ottla.client.errors import ClientError
from ottla.client.record import Record
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.compression import Buffer
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Headers, decode_records

if TYPE_CHECKING:
    from ottla.wire.columns import Columns, Flags, Numbers

COLUMNS_MIN = 128


class Harvest(NamedTuple):
    """The records of a chunk, where the next fetch begins, and what is wrong with the batch there, if it is."""

    records: list[Record]
    next_offset: int
    fault: ClientError | None


def records_of(chunk: Chunk) -> Harvest:
    """Return the records of a chunk that the application may see, from `start_offset` on."""
    contents = open_chunk(chunk)
    try:
        records = _read(contents)
    except ProtocolError:
        contents.keep_readable(lambda batch, body: _one_by_one(chunk, [batch], [body]))
        records = _read(contents)
    if records and contents.batches[0].base_offset < chunk.start_offset:
        records = [record for record in records if record.offset >= chunk.start_offset]
    return Harvest(records, contents.next_offset, contents.fault)


def _read(contents: Contents) -> list[Record]:
    batches = contents.batches
    if sum([batch.record_count for batch in batches]) >= COLUMNS_MIN and _numpy_is_here():
        return _all_at_once(contents.chunk, batches, contents.bodies)
    return _one_by_one(contents.chunk, batches, contents.bodies)


@cache
def _numpy_is_here() -> bool:
    return find_spec("numpy") is not None


def _one_by_one(chunk: Chunk, batches: Sequence[Batch], bodies: Sequence[Buffer]) -> list[Record]:
    topic, partition, new = chunk.topic, chunk.partition, tuple.__new__
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


def _all_at_once(chunk: Chunk, batches: Sequence[Batch], bodies: Sequence[Buffer]) -> list[Record]:
    from ottla.wire.columns import decode_columns

    columns = decode_columns(batches, bodies)
    data = columns.data
    counts = [batch.record_count for batch in batches]
    kinds = [1 if batch.attributes & LOG_APPEND_TIME else 0 for batch in batches]
    fields = zip(
        repeat(chunk.topic),
        repeat(chunk.partition),
        columns.offsets.tolist(),
        columns.timestamps.tolist(),
        _pieces(data, columns.key_starts, columns.key_ends, columns.key_nulls),
        _pieces(data, columns.value_starts, columns.value_ends, columns.value_nulls),
        _headers(columns),
        _spread(kinds, counts),
        _spread([batch.partition_leader_epoch for batch in batches], counts),
        repeat(0),
    )
    return list(map(tuple.__new__, repeat(Record), fields))


def _spread(numbers: Sequence[int], counts: Sequence[int]) -> Iterator[int]:
    """A batch's number for each of its records."""
    if len(set(numbers)) == 1:
        return repeat(numbers[0])
    return chain.from_iterable(map(repeat, numbers, counts))


def _pieces(data: bytes, starts: "Numbers", ends: "Numbers", nulls: "Flags") -> Iterable[bytes | None]:
    """The keys or values, None for a null."""
    if nulls.all():
        return repeat(None)
    # The one place where Python runs for each record: `map(data.__getitem__, map(slice, …))` takes a quarter longer.
    pieces: list[bytes | None] = [
        data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    for index in nulls.nonzero()[0].tolist():
        pieces[index] = None
    return pieces


def _headers(columns: "Columns") -> Iterable[Headers]:
    if not columns.header_flags.any():
        return repeat(())
    from ottla.wire.columns import decode_headers

    data = columns.data
    counts, names, name_ends, values, value_ends, nulls = decode_headers(columns)
    decoded = [
        data[start:end].decode("utf-8", "surrogateescape")
        for start, end in zip(names.tolist(), name_ends.tolist(), strict=True)
    ]
    pairs = tuple(zip(decoded, _pieces(data, values, value_ends, nulls), strict=False))
    stops = counts.cumsum()
    return [pairs[start:stop] for start, stop in zip((stops - counts).tolist(), stops.tolist(), strict=True)]
