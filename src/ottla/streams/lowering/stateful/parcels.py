"""Records on their way through Spark's row machinery: a parcel is one row, with the records of one operator
partition in it.

transformWithState takes and gives rows one at a time, for about 20 µs each. So many records are put into one row before
the shuffle, as an Arrow stream, and results come out the same way: Spark moves parcels, and records stay in Arrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.streams.lowering.stateful.division import divided
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.labels import labels
from ottla.streams.lowering.stateful.order import merged, queue_numbers
from ottla.streams.lowering.stateful.plain import values
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.types.type import Type

PARCELS = "label int, side int, part int, data binary"
RESULTS = "data binary"
TAIL = ("timestamp", "headers", "topic", "partition", "offset")
_PARCEL = pa.schema(
    [("label", pa.int32()), ("side", pa.int32()), ("part", pa.int32()), ("data", pa.binary())]
)
# Of a result, so that no row grows beyond what is good for Spark.
_RECORDS_MAX = 50_000


@dataclass(frozen=True)
class Packing:
    """How the records of one input are packed: by what type of key they are divided, and into how many partitions."""

    side: int
    key: Type
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack batches of records into parcels."""
        names = labels(self.partitions)
        for part, batch in enumerate(batches):
            if not batch.num_rows:
                continue
            for partition, some in self._divided(pa.Table.from_batches([batch])):
                parcel = {"label": names[partition], "side": self.side, "part": part, "data": wrapped(some)}
                yield pa.RecordBatch.from_pylist([parcel], schema=_PARCEL)

    def _divided(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        if self.partitions == 1:
            yield 0, table
            return
        code = key_code(self.key)
        keys = [None if key is None else code.encode(key) for key in values(_whole(table["key"]))]
        found = divided(code, keys, self.partitions)
        for number in np.unique(found):
            yield int(number), table.take(np.flatnonzero(found == number))


def wrapped(table: pa.Table) -> bytes:
    """Return records as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unwrapped(data: bytes) -> pa.Table:
    """Return the records that are in bytes."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn results back into batches of records."""
    for batch in batches:
        for data in batch.column(0):
            yield from unwrapped(data.as_buffer()).to_batches()


def opened(parcels: Sequence[tuple[int, bytes]], keys: Sequence[Type], ranks: Sequence[int]) -> list[Record]:
    """Return the records of an operator partition's parcels, in the order in which the operator takes them.

    Parcels of one task are to come in the order of their parts: records that a flat_map made of one have one place, and
    stay as they come. `keys` and `ranks` are those of each side.
    """
    records: list[Record] = []
    queues, order, offsets, stamps = [], [], [], []
    topics: dict[str | None, int] = {}
    for side, data in parcels:
        table = unwrapped(data).combine_chunks()
        lists = {name: values(_whole(table[name])) for name in table.column_names}
        count = table.num_rows
        nothing = [None] * count
        encode = key_code(keys[side]).encode
        ats = [None if key is None else encode(key) for key in lists["key"]]
        numbers = [topics.setdefault(each, len(topics)) for each in lists["topic"]]
        partitions = np.array([each or 0 for each in lists["partition"]], np.int64)
        queues.append(queue_numbers(np.full(count, side, np.int64), np.array(numbers, np.int64), partitions))
        order.append(np.full(count, ranks[side], np.int64))
        offsets.append(np.array([each or 0 for each in lists["offset"]], np.int64))
        stamps.append(np.array(lists["timestamp"], np.int64))
        # Values that stayed behind were there.
        lists.setdefault("value", [True] * count)
        fields = (
            lists.get(name, nothing)
            for name in ("key", "value", "timestamp", "old", "headers", "topic", "partition", "offset")
        )
        records.extend(
            Record(
                side,
                key,
                at,
                value,
                timestamp,
                old=old,
                headers=headers,
                topic=topic,
                partition=part,
                offset=off,
            )
            for at, key, value, timestamp, old, headers, topic, part, off in zip(ats, *fields, strict=True)
        )
    taken = merged(*(np.concatenate(each) for each in (queues, order, offsets, stamps)))
    return [records[n] for n in taken]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def results(schema: bytes, out: Sequence[Sequence[Any]], name: str, partition: int) -> Iterator[bytes]:
    """Yield the parcels of what flows out: rows are (key, value, old, timestamp, headers)."""
    fields = pa.ipc.read_schema(pa.py_buffer(schema))
    for start in range(0, len(out), _RECORDS_MAX):
        part = out[start : start + _RECORDS_MAX]
        count = len(part)
        lists = dict(
            zip(("key", "value", "old", "timestamp", "headers"), zip(*part, strict=True), strict=True)
        )
        columns = []
        for field in fields:
            if field.name == "topic":
                columns.append(pa.repeat(pa.scalar(name, field.type), count))
            elif field.name == "partition":
                columns.append(pa.repeat(pa.scalar(partition, field.type), count))
            elif field.name == "offset":
                columns.append(pa.array(range(start, start + count), field.type))
            else:
                columns.append(pa.array(lists[field.name], field.type))
        yield wrapped(pa.Table.from_arrays(columns, schema=fields))
