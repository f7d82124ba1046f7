"""From rows to record batches in final form, all but the header: the work of a task.

E1  Rows of one partition keep their order.
E2  A batch has at most `batch_bytes` before compression, or one record.
E3  Nothing is held of a row besides its bytes; rows wait until there are enough for batches of a good size.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ottla.client.errors import RecordTooLarge
from ottla.client.producer.batch import EncodedRecords
from ottla.client.producer.config import ProducerConfig
from ottla.spark.sink.partitioning import Partitioning, Target
from ottla.spark.sink.refusal import WrongColumns
from ottla.spark.sink.rows import Rows, rows_of
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.columns_encoding import OVERHEAD_BYTES_MAX, encode_columns, encode_headers, lengths
from ottla.wire.compression import compress

Numbers = NDArray[np.int64]

_GATHER_BYTES = 2 << 20
_EMPTY_HEADER = bytes(BATCH_HEADER_SIZE)


class Sealed(NamedTuple):
    """A batch, and the partition it is bound for."""

    topic: str
    partition: int
    filled: EncodedRecords


class Encoder:
    """Encodes the rows of one task.

    `find` returns how many partitions a topic has, and `now_ms` the time of day.
    """

    def __init__(
        self,
        terms: ProducerConfig,
        batch_bytes: int,
        topic: str | None,
        partitioning: Partitioning,
        find: Callable[[str], Target],
        now_ms: Callable[[], int],
    ) -> None:
        self._terms = terms
        self._batch_bytes = batch_bytes
        self._topic = topic
        self._partitioning = partitioning
        self._find = find
        self._now_ms = now_ms

    def encode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Sealed]:
        """Yield the batches that these rows make."""
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            waiting.append(batch)
            size += batch.nbytes
            if size >= _GATHER_BYTES:
                yield from self._encode(waiting)
                waiting, size = [], 0
        if waiting:
            yield from self._encode(waiting)

    def _encode(self, waiting: list[pa.RecordBatch]) -> Iterator[Sealed]:
        (batch,) = (
            waiting if len(waiting) == 1 else pa.Table.from_batches(waiting).combine_chunks().to_batches()
        )
        rows = rows_of(batch, self._now_ms())
        if self._topic is not None:
            yield from self._encode_topic(self._find(self._topic), rows)
            return
        if rows.topic is None or rows.topic.null_count:
            hint = "give every row a topic, or set the option topic for all"
            raise WrongColumns("a row has no topic", hint=hint)
        names = rows.topic.dictionary_encode()
        for number, name in enumerate(names.dictionary.to_pylist()):
            who = pc.equal(names.indices, number)
            some = rows if len(names.dictionary) == 1 else _filtered(rows, who)
            yield from self._encode_topic(self._find(name), some)

    def _encode_topic(self, target: Target, rows: Rows) -> Iterator[Sealed]:
        kind = rows.value.type
        headers = None
        if rows.headers is not None:
            _check_names(rows.headers)
            headers = encode_headers(rows.headers, kind)
        sizes = np.maximum(lengths(rows.value), 0) + OVERHEAD_BYTES_MAX
        if rows.key is not None:
            sizes += np.maximum(lengths(rows.key), 0)
        if headers is not None:
            sizes += lengths(headers)
        self._check_sizes(target, sizes)
        partitions = self._partitioning.choose(target, rows.partition, rows.key, sizes)
        value, key, times = rows.value, rows.key, rows.timestamp
        if np.count_nonzero(np.diff(partitions)) >= np.count_nonzero(np.bincount(partitions)):
            # Rows of one partition do not lie together. Numbers of 16 bits are sorted without comparing them.
            order = np.argsort(
                partitions.astype(np.uint16 if target.partition_count <= 1 << 16 else np.int64), kind="stable"
            )
            partitions, sizes = partitions[order], sizes[order]
            times = times if isinstance(times, int) else times[order]
            taken = pa.array(order)
            value = value.take(taken)
            key = None if key is None else key.take(taken)
            headers = None if headers is None else headers.take(taken)
        starts = _cut(partitions, sizes, self._batch_bytes - BATCH_HEADER_SIZE)
        encoded = encode_columns(key, value, headers, times, starts)
        counts = np.diff(starts, append=len(value)).tolist()
        bounds = encoded.bounds.tolist()
        codec, level = self._terms.codec, self._terms.level
        for number, partition in enumerate(partitions[starts].tolist()):
            records = encoded.data[bounds[number] : bounds[number + 1]]
            buffer = bytearray(_EMPTY_HEADER)
            buffer += compress(codec, records, level) if codec else records
            filled = EncodedRecords(
                buffer,
                counts[number],
                int(encoded.base_timestamps[number]),
                int(encoded.max_timestamps[number]),
                codec,
            )
            yield Sealed(target.name, partition, filled)

    def _check_sizes(self, target: Target, sizes: Numbers) -> None:
        largest = int(sizes.max(initial=0)) + BATCH_HEADER_SIZE
        if largest > self._terms.request_bytes_max:
            raise RecordTooLarge(
                f"a row for topic {target.name} takes {largest} bytes, and max.request.size is "
                f"{self._terms.request_bytes_max}",
                hint="raise kafka.max.request.size, and max.message.bytes of the topic, or write smaller rows",
            )


def _filtered(rows: Rows, who: pa.Array) -> Rows:
    columns = {
        name: None if column is None else column.filter(who)
        for name, column in rows._asdict().items()
        if name != "timestamp"
    }
    times = rows.timestamp
    return Rows(**columns, timestamp=times if isinstance(times, int) else times[np.asarray(who)])


def _check_names(headers: pa.Array) -> None:
    if headers.flatten().field("key").null_count:
        raise WrongColumns("a header has no key", hint="leave out headers whose key is null")


def _cut(partitions: Numbers, sizes: Numbers, limit: int) -> Numbers:
    """With which rows batches begin, where rows of one partition lie together."""
    ends = np.cumsum(sizes)
    edges = np.flatnonzero(np.diff(partitions)) + 1
    starts: list[int] = []
    for first, end in zip([0, *edges.tolist()], [*edges.tolist(), len(sizes)], strict=True):
        row = first
        while row < end:
            starts.append(row)
            before = int(ends[row] - sizes[row])
            row = min(end, max(row + 1, int(np.searchsorted(ends, before + limit, "right"))))
    return np.array(starts, np.int64)
