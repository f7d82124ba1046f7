"""Stateless operators on tables. A change brings its old value along, so they compute the new and the old side alike.

A function is never called for a side that is null: a tombstone stays one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.lowering.columns import computed, holds, once
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.datatypes import arrow_type
from ottla.streams.lowering.envelope import TAIL_NAMES, schema
from ottla.streams.lowering.stateful.keycode import same_key
from ottla.streams.lowering.steps import OFFERED, as_pair, predicate
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.node import Node
from ottla.streams.plan.tables import TableFilter, TableMapValues, ToStream

SIDES = ("value", "old")


def lower_to_stream(node: ToStream, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Forget the old values."""
    return inputs[0].drop("old")


def lower_to_table(node: Node, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Make changes of records, where nobody asks for the values before."""
    old = F.lit(None).cast(schema(node)["value"].dataType)
    return inputs[0].where(F.col("key").isNotNull()).withColumn("old", old)


def lower_table_filter(node: TableFilter, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Make a tombstone of what the predicate does not hold for; where nothing was and nothing is, there is no
    change.
    """
    frame = inputs[0]
    if node.predicate.expression is None:
        call, wanted = predicate(node.predicate, node.name), not node.negated
        kept = _called(frame, node, lambda key, value: value if call(key, value) is wanted else None)
    else:
        sides = {}
        for side in SIDES:
            found = holds(node.predicate, _given(side), node.name)
            held = F.when(F.col(side).isNull(), F.lit(False)).otherwise(~found if node.negated else found)
            sides[side] = once(F.when(held, F.col(side)))
        kept = frame.withColumns(sides)
    return kept.where(F.col("value").isNotNull() | F.col("old").isNotNull())


def lower_table_map_values(node: TableMapValues, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Compute both sides of a change."""
    if node.mapper.expression is None:
        return _called(inputs[0], node, caller(node.mapper, OFFERED, node.name))
    sides = {side: computed(node.mapper, _given(side), node.name) for side in SIDES}
    return inputs[0].withColumns(
        {side: once(F.when(F.col(side).isNotNull(), found)) for side, found in sides.items()}
    )


def lower_regroup(node: Regroup, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Say of each change which group it leaves and which one it joins."""
    call, place = caller(node.selector, OFFERED, node.name), node.selector.place
    before, result = node.input, node.selector.result.parts  # type: ignore[attr-defined]
    load_key, load_value = loader(before.key), loader(before.value)
    dumps = [dumper(each, node.name, place) for each in (node.key, result[1])]
    types = arrow_type(node.key), arrow_type(node.value)
    is_same = same_key(node.key)

    def chosen(key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = as_pair(call(load_key(key), load_value(value)), node.name, place)
        if pair[0] is None or pair[1] is None:
            return None
        return dumps[0](pair[0]), dumps[1](pair[1])

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            at: list[int] = []
            keys: list[Any] = []
            moves: list[tuple[Any, Any]] = []
            for n, (key, value, old) in enumerate(_rows(batch)):
                with _Located(batch, n):
                    new, was = chosen(key, value), chosen(key, old)
                if new is not None and was is not None and is_same(new[0], was[0]):
                    at.append(n)
                    keys.append(new[0])
                    moves.append((new[1], was[1]))
                    continue
                if was is not None:
                    at.append(n)
                    keys.append(was[0])
                    moves.append((None, was[1]))
                if new is not None:
                    at.append(n)
                    keys.append(new[0])
                    moves.append((new[1], None))
            rest = batch.take(pa.array(at, pa.int32()))
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(keys, types[0]),
                    pa.array(moves, types[1]),
                    *(rest.column(each) for each in TAIL_NAMES),
                ],
                names=["key", "value", *TAIL_NAMES],
            )

    return inputs[0].mapInArrow(batches, schema(node))


def _given(side: str) -> dict[str, Column]:
    return {"key": F.col("key"), "value": F.col(side)}


def _called(frame: DataFrame, node: Node, call: Callable[[Any, Any], Any]) -> DataFrame:
    before = node.input
    load_key, load_value = loader(before.key), loader(before.value)
    function = node.predicate if isinstance(node, TableFilter) else node.mapper  # type: ignore[attr-defined]
    dump = dumper(node.value, node.name, function.place)
    type = arrow_type(node.value)

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            sides: tuple[list[Any], list[Any]] = ([], [])
            for n, (key, *both) in enumerate(_rows(batch)):
                with _Located(batch, n):
                    for side, one in zip(sides, both, strict=True):
                        side.append(None if one is None else dump(call(load_key(key), load_value(one))))
            yield pa.RecordBatch.from_arrays(
                [
                    batch.column("key"),
                    *(pa.array(side, type) for side in sides),
                    *(batch.column(each) for each in TAIL_NAMES),
                ],
                names=["key", "value", "old", *TAIL_NAMES],
            )

    return frame.mapInArrow(batches, schema(node))


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in ("key", "value", "old")), strict=True)


class _Located:
    """Names the record in what goes wrong inside."""

    def __init__(self, batch: pa.RecordBatch, n: int) -> None:
        self._batch, self._n = batch, n

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, FunctionFailed):
            where = [self._batch.column(name)[self._n].as_py() for name in ("topic", "partition", "offset")]
            raise error.located(*where) from error.__cause__
