"""Makes rows of what a fetch brought: Arrow columns in the types that Spark wants, and only those asked for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ottla.client.consumer import arrow_arrays as arrays
from ottla.client.consumer.fetched_batches import ReadableBatches
from ottla.spark.source.columns import COLUMNS, HEADERS, arrow_schema
from ottla.spark.source.refusal import Untimely
from ottla.wire.batch import LOG_APPEND_TIME
from ottla.wire.columns import Columns, Numbers, decode_columns

_MICROSECONDS = 1000
# Beyond this a number of milliseconds is no number of microseconds of 64 bits.
_TIME_MS_MAX = ((1 << 63) - 1) // _MICROSECONDS


class Source(NamedTuple):
    """What the columns are made of."""

    contents: ReadableBatches
    columns: Columns
    data: pa.Buffer
    size: int


def _timestamps(source: Source) -> pa.Array:
    times = source.columns.timestamps
    if len(times) and (int(times.max()) > _TIME_MS_MAX or int(times.min()) < -_TIME_MS_MAX):
        _complain(source, times)
    return arrays.numbers(times * _MICROSECONDS, COLUMNS["timestamp"].arrow)


def _complain(source: Source, times: Numbers) -> None:
    at = int(np.flatnonzero((times > _TIME_MS_MAX) | (times < -_TIME_MS_MAX))[0])
    raise Untimely(
        f"the record at offset {source.columns.offsets[at]} of {source.contents.fetched.name} has the timestamp"
        f" {times[at]}, which is no time in milliseconds that Spark could hold",
        hint="its producer counts in microseconds or less: mend that, or leave timestamp out by the option columns",
    )


def _kinds(source: Source) -> pa.Array:
    batches = source.contents.batches
    kinds = [batch.attributes & LOG_APPEND_TIME != 0 for batch in batches]
    if not any(kinds):
        return arrays.numbers(np.zeros(source.size, np.int32), pa.int32())
    counts = [batch.record_count for batch in batches]
    return arrays.numbers(np.repeat(np.array(kinds, np.int32), counts), pa.int32())


_MAKE: dict[str, Callable[[Source], pa.Array]] = {
    "key": lambda of: arrays.pieces(
        of.data, of.columns.key_starts, of.columns.key_ends, of.columns.key_nulls
    ),
    "value": lambda of: arrays.pieces(
        of.data, of.columns.value_starts, of.columns.value_ends, of.columns.value_nulls
    ),
    "topic": lambda of: arrays.names([of.contents.fetched.topic], [of.size]),
    "partition": lambda of: arrays.numbers(
        np.full(of.size, of.contents.fetched.partition, np.int32), pa.int32()
    ),
    "offset": lambda of: arrays.numbers(of.columns.offsets, pa.int64()),
    "timestamp": _timestamps,
    "timestampType": _kinds,
    "headers": lambda of: arrays.headers(of.data, of.columns, HEADERS, null_if_none=True),
}


_PAYLOADS = frozenset({"key", "value", "headers"})


class Table:
    """Makes batches of rows with these columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self.schema = arrow_schema(names)
        self._make = [_MAKE[name] for name in names]
        self._payloads = not _PAYLOADS.isdisjoint(names)

    def rows(self, contents: ReadableBatches, end_offset: int) -> pa.RecordBatch:
        """Return the records from the chunk's start on and before `end_offset`; ProtocolError if they make no sense."""
        columns = decode_columns(contents.batches, contents.bodies, payloads=self._payloads)
        offsets = columns.offsets
        source = Source(contents, columns, pa.py_buffer(columns.data), len(offsets))
        made = pa.RecordBatch.from_arrays([make(source) for make in self._make], schema=self.schema)
        # Batches are fetched whole, whatever offset was asked for, and records lie in the order of their offsets.
        first = int(np.searchsorted(offsets, contents.fetched.start_offset))
        last = int(np.searchsorted(offsets, end_offset))
        return made if last - first == len(offsets) else made.slice(first, max(last - first, 0))
