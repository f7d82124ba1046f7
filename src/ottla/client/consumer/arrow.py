"""Records as an Arrow table, made from the batches of a fetch without a Python object for any of them.

The columns are those of Spark's Kafka source, in our spelling, and the leader epoch. They are always all there, in this
order and of these types:

    topic           string
    partition       int32
    offset          int64
    timestamp       timestamp[ms, UTC]
    timestamp_type  int8                   0: the producer's time, 1: the broker's
    leader_epoch    int32                  -1 if the broker did not say
    key             binary                 null where the record has none
    value           binary                 null in a tombstone
    headers         list<struct<key: string, value: binary>>    empty where there are none

A1  Rows are in the order of the chunks, and within a chunk in the order of the log.
A2  What is hidden in `chunk.open_chunk` is not in the table either.
A3  A name of a header that is no UTF-8 has U+FFFD in the place of its bad bytes, as in Java, since Arrow's strings are
    UTF-8; `poll()` keeps such names as they are.

Keys and values are cut out of the batches by Arrow. All bytes of the batches are laid out as an array of twice as many
pieces, value, what lies between, value, and so on, of which `take` copies every other one.
"""

from collections.abc import Sequence
from typing import NamedTuple

try:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
except ImportError as error:
    raise ImportError(f"Arrow needs more than is here ({error}): pip install 'ottla[arrow]'") from error

from ottla.client.consumer.chunk import Chunk, Contents, open_chunk
from ottla.client.errors import ClientError, RecordTooLarge
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.columns import Columns, Flags, Numbers, decode_columns, decode_headers
from ottla.wire.compression import Buffer
from ottla.wire.errors import ProtocolError

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("timestamp_type", pa.int8()),
        ("leader_epoch", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
    ]
)

# Where a piece of a binary column lies is a number of 31 bits.
BYTES_MAX = (1 << 31) - 1


class Harvest(NamedTuple):
    """The records of some chunks, where the next fetch of each begins, and the first thing that is wrong there."""

    batch: pa.RecordBatch
    next_offsets: list[int]
    fault: ClientError | None


def batch_of(chunks: Sequence[Chunk]) -> pa.RecordBatch:
    """Return the records of these chunks that the application may see. Raises what is wrong with any of them."""
    found = harvest(chunks)
    if found.fault is not None:
        raise found.fault
    return found.batch


def harvest(chunks: Sequence[Chunk], records_max: int | None = None) -> Harvest:
    """Return the records of these chunks, as far as they can be read and fit into one table of 2 GB.

    Batches stay whole, so there may be somewhat more than `records_max`, but no batch is opened beyond that.
    """
    opened: list[Contents] = []
    left = records_max
    for chunk in chunks:
        contents = open_chunk(chunk, BYTES_MAX, left)
        opened.append(contents)
        if left is not None:
            left -= contents.records
    _fit(opened)
    try:
        batch = _table(opened)
    except ProtocolError:
        for contents in opened:
            contents.keep_readable(_prove)
        batch = _table(opened)
    faults = (contents.fault for contents in opened if contents.fault is not None)
    return Harvest(batch, [contents.next_offset for contents in opened], next(faults, None))


def _fit(opened: Sequence[Contents]) -> None:
    """Leave for another time what does not fit into one table: keys and values with it, or the topics' names."""
    body_bytes = name_bytes = 0
    for contents in opened:
        name_size = len(contents.chunk.topic)
        for index, (batch, body) in enumerate(zip(contents.batches, contents.bodies, strict=True)):
            is_first = not body_bytes
            body_bytes += len(body)
            name_bytes += name_size * min(batch.record_count, len(body))
            if max(body_bytes, name_bytes) > BYTES_MAX:
                contents.cut(index)
                if is_first:
                    contents.fault = RecordTooLarge(
                        f"batch at offset {batch.base_offset} of {contents.chunk.name} has"
                        f" {batch.record_count} records, too many for one table",
                        hint="read it by poll()",
                    )
                break


def _prove(batch: Batch, body: Buffer) -> None:
    decode_headers(decode_columns([batch], [body]))


def _table(opened: Sequence[Contents]) -> pa.RecordBatch:
    batches = [batch for contents in opened for batch in contents.batches]
    columns = decode_columns(batches, [body for contents in opened for body in contents.bodies])
    counts = [sum([batch.record_count for batch in contents.batches]) for contents in opened]
    each = [batch.record_count for batch in batches]
    kinds = np.array([batch.attributes & LOG_APPEND_TIME != 0 for batch in batches], np.int8)
    epochs = np.array([batch.partition_leader_epoch for batch in batches], np.int32)
    data = pa.py_buffer(columns.data)
    table = pa.RecordBatch.from_arrays(
        [
            _topics(opened, counts),
            pa.array(
                np.repeat(np.array([contents.chunk.partition for contents in opened], np.int32), counts)
            ),
            pa.array(columns.offsets),
            pa.array(columns.timestamps).view(SCHEMA.field("timestamp").type),
            pa.array(np.repeat(kinds, each)),
            pa.array(np.repeat(epochs, each)),
            _cut_out(data, columns.key_starts, columns.key_ends, columns.key_nulls),
            _cut_out(data, columns.value_starts, columns.value_ends, columns.value_nulls),
            _headers(data, columns),
        ],
        schema=SCHEMA,
    )
    starts = [contents.chunk.start_offset for contents in opened]
    if any(
        contents.batches and contents.batches[0].base_offset < start
        for contents, start in zip(opened, starts, strict=True)
    ):
        table = table.filter(pa.array(columns.offsets >= np.repeat(np.array(starts, np.int64), counts)))
    return table


def _topics(opened: Sequence[Contents], counts: Sequence[int]) -> pa.Array:
    names = [contents.chunk.topic.encode() for contents in opened]
    ends = np.cumsum(np.repeat(np.array([len(name) for name in names], np.int32), counts), dtype=np.int32)
    text = b"".join([name * count for name, count in zip(names, counts, strict=True)])
    return pa.Array.from_buffers(pa.string(), len(ends), [None, _offsets(ends), pa.py_buffer(text)])


def _cut_out(data: pa.Buffer, starts: Numbers, ends: Numbers, nulls: Flags) -> pa.Array:
    """The pieces of `data` from each start to its end, which follow one another."""
    count = len(starts)
    if nulls.all():
        return pa.nulls(count, pa.binary())
    places = np.empty(2 * count + 1, np.int32)
    places[:-1:2] = starts
    places[1::2] = ends
    places[-1] = ends[-1]
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(places), data])
    taken = pieces.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    if not nulls.any():
        return taken
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [validity, *taken.buffers()[1:]])


def _headers(data: pa.Buffer, columns: Columns) -> pa.Array:
    count = len(columns.ends)
    if not columns.header_flags.any():
        nothing = pa.array([], _HEADER)
        return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), nothing)
    headers = decode_headers(columns)
    names = _cut_out(
        data, headers.name_starts, headers.name_ends, np.zeros(len(headers.name_starts), np.bool_)
    )
    values = _cut_out(data, headers.value_starts, headers.value_ends, headers.value_nulls)
    pairs = pa.StructArray.from_arrays([_text(names), values], fields=list(_HEADER))
    ends = np.cumsum(headers.counts, dtype=np.int32)
    return pa.Array.from_buffers(
        SCHEMA.field("headers").type, count, [None, _offsets(ends)], children=[pairs]
    )


def _offsets(ends: NDArray[np.int32]) -> pa.Buffer:
    return pa.py_buffer(np.concatenate([np.zeros(1, np.int32), ends]))


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
