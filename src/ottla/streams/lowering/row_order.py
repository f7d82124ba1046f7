"""Rows on their way out of the chain of stages: out of their parcels, and into their order.

L1  Rows whose key is the same are in one of Spark's partitions, in the order of their lineages: between queues the
    earlier timestamp goes first, within a queue the offset, of one record the path.
L2  Without lineages rows come out of one stage alone, and in the order in which they were put in.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ottla.streams.lowering.emission import ROOT
from ottla.streams.lowering.stateful.order import merged, queue_numbers, topic_numbers
from ottla.streams.lowering.stateful.parcels import unwrapped


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows as they come."""
    for batch in batches:
        for data in batch.column("data"):
            yield from unwrapped(data.as_buffer()).to_batches()


def unpacked_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order of their lineages."""
    parcels = [
        (part, data)
        for batch in batches
        for part, data in zip(batch.column("part").to_pylist(), batch.column("data"), strict=True)
    ]
    parcels.sort(key=lambda each: each[0])
    yield from _in_order([unwrapped(data.as_buffer()) for _, data in parcels])


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order of their lineages, after a shuffle."""
    yield from _in_order([pa.Table.from_batches([batch]) for batch in batches])


def _in_order(tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    if not tables:
        return
    table = pa.concat_tables(tables)
    if table.num_rows:
        yield from table.take(order(table)).drop_columns(list(ROOT)).to_batches()


def order(table: pa.Table) -> np.ndarray:
    """Return the numbers of rows in the order of their lineages; those of one lineage stay as they are."""
    numbers = topic_numbers(table["root_topic"].to_pylist())
    partitions, offsets, stamps = (
        np.array(table[f"root_{name}"].fill_null(0).to_pylist(), np.int64)
        for name in ("partition", "offset", "timestamp")
    )
    paths = table["path"].to_pylist()
    by_path = np.array(sorted(range(table.num_rows), key=paths.__getitem__), np.int64)
    nothing = np.zeros(table.num_rows, np.int64)
    queues = queue_numbers(nothing, numbers, partitions)
    return by_path[merged(queues[by_path], nothing, offsets[by_path], stamps[by_path])]
