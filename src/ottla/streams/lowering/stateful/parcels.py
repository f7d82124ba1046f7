"""Records on their path through Spark's row machinery: a parcel is one row, with the records of one operator
partition in it.

transformWithState takes and gives rows one at a time, for about 20 µs each. So many records are put into one row before
the shuffle, as an Arrow stream, and results come out the same path: Spark moves parcels, and records stay in Arrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.streams.lowering.emission import ROOT, TO_OUTPUT, Emissions, Layout, Lineage
from ottla.streams.lowering.stateful.division import divided
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.labels import labels
from ottla.streams.lowering.stateful.order import merged, queue_numbers, topic_numbers
from ottla.streams.lowering.stateful.plain import values
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.types.type import Bytes, Type

PARCELS = "label int, target int, part int, data binary"
_PARCEL = pa.schema(
    [("label", pa.int32()), ("target", pa.int32()), ("part", pa.int32()), ("data", pa.binary())]
)
_BYTES = key_code(Bytes())
# Of a parcel of results, so that no row grows beyond what is good for Spark.
_RECORDS_MAX = 50_000


class Parcel(NamedTuple):
    """Records on their path: to the operator partition of that label, to that input of a stage or out of the topology.

    Parcels of one task are numbered, so that records that a flat_map made of one stay as they came.
    """

    label: int
    target: int
    part: int
    data: bytes


@dataclass(frozen=True)
class Packing:
    """Packs records for one input: by what type of key they are divided, and into how many partitions.

    With `level`, records get a lineage (`emission.py`): they are as they come from a topic, and have gone through so
    many topics between sub-topologies.
    """

    target: int
    key: Type
    partitions: int
    level: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack batches of records into parcels."""
        for part, batch in enumerate(batches):
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                if self.level is not None:
                    table = _with_lineage(table, self.level)
                parts = divided_table(table, self.key, self.partitions)
                yield batch_of(Parcel(label, self.target, part, wrapped(some)) for label, some in parts)


def _with_lineage(table: pa.Table, level: int) -> pa.Table:
    for name in ("topic", "partition", "offset", "timestamp"):
        table = table.append_column(f"root_{name}", table[name])
    return table.append_column("path", pa.repeat(pa.scalar(bytes((level,)), pa.binary()), table.num_rows))


def batch_of(parcels: Iterable[Parcel]) -> pa.RecordBatch:
    """Return parcels as rows of Spark's."""
    return pa.RecordBatch.from_pylist([each._asdict() for each in parcels], schema=_PARCEL)


def divided_table(table: pa.Table, key: Type, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield records by the label of the operator partition of their keys."""
    names = labels(partitions)
    if partitions == 1:
        yield names[0], table
        return
    code = key_code(key)
    keys = [None if key is None else code.encode(key) for key in values(_whole(table["key"]))]
    yield from _by_number(table, divided(code, keys, partitions), names)


def divided_rows(table: pa.Table, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows that leave by their keys, which are bytes; without a key by the partition that they come from."""
    names = labels(partitions)
    if partitions == 1:
        yield names[0], table
        return
    keys = _whole(table["key"]).to_pylist()
    found = divided(_BYTES, keys, partitions)
    roots = _whole(table["root_partition"]).to_pylist()
    for n, key in enumerate(keys):
        if key is None:
            found[n] = (roots[n] or 0) % partitions
    yield from _by_number(table, found, names)


def _by_number(
    table: pa.Table, found: NDArray[np.int64], names: Sequence[int]
) -> Iterator[tuple[int, pa.Table]]:
    for number in np.unique(found):
        yield names[int(number)], table.take(np.flatnonzero(found == number))


def packed(emissions: Emissions, layout: Layout, label: int | None, parts: Iterator[int]) -> Iterator[Parcel]:
    """Yield parcels of what has emitted. With `label`, rows that leave stay in that operator partition."""
    for target, table in emissions.tables():
        if target != TO_OUTPUT:
            divisions = divided_table(table, layout.inputs[target][1], layout.partitions)
        elif label is not None:
            divisions = iter(((label, table),))
        else:
            divisions = divided_rows(table, layout.partitions)
        for name, some in divisions:
            for start in range(0, some.num_rows, _RECORDS_MAX):
                yield Parcel(name, target, next(parts), wrapped(some.slice(start, _RECORDS_MAX)))


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


def opened(parcels: Sequence[tuple[int, bytes]], keys: Sequence[Type], ranks: Sequence[int]) -> list[Record]:
    """Return the records of an operator partition's parcels, in the order in which the operator takes them.

    Parcels of one task are to come in the order of their parts: records that a flat_map made of one have one place, and
    stay as they come. `keys` and `ranks` are those of each side.
    """
    records: list[Record] = []
    sides, partitions, order, offsets, stamps = [], [], [], [], []
    topics: list[str | None] = []
    for side, data in parcels:
        table = unwrapped(data).combine_chunks()
        lists = {name: values(_whole(table[name])) for name in table.column_names}
        count = table.num_rows
        nothing = [None] * count
        encode = key_code(keys[side]).encode
        ats = [None if key is None else encode(key) for key in lists["key"]]
        topics += lists["topic"]
        sides.append(np.full(count, side, np.int64))
        partitions.append(np.array([each or 0 for each in lists["partition"]], np.int64))
        order.append(np.full(count, ranks[side], np.int64))
        offsets.append(np.array([each or 0 for each in lists["offset"]], np.int64))
        stamps.append(np.array(lists["timestamp"], np.int64))
        # Values that stayed behind were there.
        lists.setdefault("value", [True] * count)
        lineages: Iterable[Lineage | None] = nothing
        if "path" in lists:
            lineages = [Lineage(*each) for each in zip(*(lists[name] for name in ROOT), strict=True)]
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
                lineage=lineage,
            )
            for at, lineage, key, value, timestamp, old, headers, topic, part, off in zip(
                ats, lineages, *fields, strict=True
            )
        )
    queues = queue_numbers(np.concatenate(sides), topic_numbers(topics), np.concatenate(partitions))
    taken = merged(queues, *(np.concatenate(each) for each in (order, offsets, stamps)))
    return [records[n] for n in taken]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
