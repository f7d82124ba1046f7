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

A1  Rows are in the order of the fetched parts, and within a part in the order of the log.
A2  Batches that `read_batches` leaves out are not in the table.
A3  A name of a header that is no UTF-8 has U+FFFD in the place of its bad bytes, as in Java, since Arrow's strings are
    UTF-8; `poll()` keeps such names as they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

try:
    import numpy as np
    import pyarrow as pa

    from ottla.client.consumer import arrow_arrays as arrays
except ImportError as error:
    raise ImportError(f"Arrow needs more than is here ({error}): pip install 'ottla[arrow]'") from error

from ottla.client.consumer.fetched_batches import FetchedBatches, ReadableBatches, read_batches
from ottla.client.errors import ClientError, RecordTooLarge
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.columns import decode_columns, decode_headers
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


class ArrowRecords(NamedTuple):
    """The records of some fetched parts, the next offset of each, and the first error."""

    batch: pa.RecordBatch
    next_offsets: list[int]
    fault: ClientError | None


def record_batch_of(fetched_parts: Sequence[FetchedBatches]) -> pa.RecordBatch:
    """Return the records that the application may read. Raises the first error."""
    found = arrow_records_of(fetched_parts)
    if found.fault is not None:
        raise found.fault
    return found.batch


def arrow_records_of(fetched_parts: Sequence[FetchedBatches], records_max: int | None = None) -> ArrowRecords:
    """Return the records that can be read and fit into one table of 2 GB.

    Batches stay whole, so there may be somewhat more than `records_max`, but no batch is opened beyond that.
    """
    opened: list[ReadableBatches] = []
    left = records_max
    for fetched in fetched_parts:
        readable = read_batches(fetched, BYTES_MAX, left)
        opened.append(readable)
        if left is not None:
            left -= readable.records
    _cut_to_table_size(opened)
    try:
        batch = _table(opened)
    except ProtocolError:
        for readable in opened:
            readable.keep_readable(_check)
        batch = _table(opened)
    faults = (readable.fault for readable in opened if readable.fault is not None)
    return ArrowRecords(batch, [readable.next_offset for readable in opened], next(faults, None))


def _cut_to_table_size(opened: Sequence[ReadableBatches]) -> None:
    """Remove the batches that do not fit into one table, by their keys and values or by the topic names."""
    body_bytes = name_bytes = 0
    for readable in opened:
        name_size = len(readable.fetched.topic)
        for index, (batch, body) in enumerate(zip(readable.batches, readable.bodies, strict=True)):
            is_first = not body_bytes
            body_bytes += len(body)
            name_bytes += name_size * min(batch.record_count, len(body))
            if max(body_bytes, name_bytes) > BYTES_MAX:
                readable.cut(index)
                if is_first:
                    readable.fault = RecordTooLarge(
                        f"batch at offset {batch.base_offset} of {readable.fetched.name} has"
                        f" {batch.record_count} records, too many for one table",
                        hint="read it by poll()",
                    )
                break


def _check(batch: Batch, body: Buffer) -> None:
    decode_headers(decode_columns([batch], [body]))


def _table(opened: Sequence[ReadableBatches]) -> pa.RecordBatch:
    batches = [batch for readable in opened for batch in readable.batches]
    columns = decode_columns(batches, [body for readable in opened for body in readable.bodies])
    counts = [sum([batch.record_count for batch in readable.batches]) for readable in opened]
    each = [batch.record_count for batch in batches]
    kinds = np.array([batch.attributes & LOG_APPEND_TIME != 0 for batch in batches], np.int8)
    epochs = np.array([batch.partition_leader_epoch for batch in batches], np.int32)
    data = pa.py_buffer(columns.data)
    table = pa.RecordBatch.from_arrays(
        [
            arrays.names([readable.fetched.topic for readable in opened], counts),
            arrays.numbers(
                np.repeat(np.array([readable.fetched.partition for readable in opened], np.int32), counts),
                pa.int32(),
            ),
            arrays.numbers(columns.offsets, pa.int64()),
            arrays.numbers(columns.timestamps, SCHEMA.field("timestamp").type),
            arrays.numbers(np.repeat(kinds, each), pa.int8()),
            arrays.numbers(np.repeat(epochs, each), pa.int32()),
            arrays.pieces(data, columns.key_starts, columns.key_ends, columns.key_nulls),
            arrays.pieces(data, columns.value_starts, columns.value_ends, columns.value_nulls),
            arrays.headers(data, columns, SCHEMA.field("headers").type),
        ],
        schema=SCHEMA,
    )
    starts = [readable.fetched.start_offset for readable in opened]
    if any(
        readable.batches and readable.batches[0].base_offset < start
        for readable, start in zip(opened, starts, strict=True)
    ):
        wanted = columns.offsets >= np.repeat(np.array(starts, np.int64), counts)
        table = table.filter(arrays.flags(wanted))
    return table
