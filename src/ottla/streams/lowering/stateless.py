"""Stateless operators on streams, as Columns. Those whose functions Python must call are in `steps`."""

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.expression.tree import Make
from ottla.streams.lowering.columns import computed, holds, once, there
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.envelope import TAIL_NAMES
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Repartition,
    SelectKey,
)

# As Python says it.
_NO_LIST = "TypeError: 'NoneType' object is not iterable"


def given() -> dict[str, Column]:
    """Return the Columns of what most functions are called with."""
    return {"key": F.col("key"), "value": F.col("value")}


def lower_filter(node: Filter, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Keep what the predicate holds for."""
    return inputs[0].where(kept(node, given()))


def kept(node: Filter, given: dict[str, Column]) -> Column:
    """Return whether a filter keeps a record."""
    found = holds(node.predicate, given, node.name)
    return ~found if node.negated else found


def lower_branch(node: Branch, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Keep what no earlier predicate holds for, and the last one does."""
    return inputs[0].where(taken(node, given()))


def taken(node: Branch, given: dict[str, Column]) -> Column:
    """Return whether a record goes this way. No predicate is asked after one that holds."""
    tests = [holds(each, given, node.name) for each in node.predicates]
    wanted = F.lit(True) if node.rest else tests.pop()
    for each in reversed(tests):
        wanted = F.when(each, F.lit(False)).otherwise(wanted)
    return wanted


def lower_map(node: Map, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Replace key and value."""
    key, value = halves(node.mapper, given(), node.name)
    return inputs[0].select(once(key).alias("key"), once(value).alias("value"), *TAIL_NAMES)


def halves(mapper: Function, given: dict[str, Column], name: str) -> tuple[Column, Column]:
    """Return the key and the value that a mapper makes."""
    expression = mapper.expression
    if isinstance(expression, Make):
        first, second = expression.parts
        parts = [replace(mapper, result=each.type, expression=each) for each in (first, second)]
        return computed(parts[0], given, name), computed(parts[1], given, name)
    whole = there(mapper, given, name, "returned None, which is not a pair of key and value", shells=1)
    return whole.getField("_1"), whole.getField("_2")


def lower_map_values(node: MapValues, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Replace the value."""
    return inputs[0].withColumn("value", once(computed(node.mapper, given(), node.name)))


def lower_select_key(node: SelectKey, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Replace the key."""
    return inputs[0].withColumn("key", once(computed(node.selector, given(), node.name)))


def lower_flat_map(node: FlatMap, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Replace each record by the pairs of a list."""
    found = there(node.mapper, given(), node.name, _NO_LIST, shells=2)
    pairs = inputs[0].select(F.explode(found).alias("pair"), *TAIL_NAMES)
    return pairs.select(F.col("pair._1").alias("key"), F.col("pair._2").alias("value"), *TAIL_NAMES)


def lower_flat_map_values(node: FlatMapValues, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Replace each record by one for each value of a list."""
    found = there(node.mapper, given(), node.name, _NO_LIST, shells=1)
    return inputs[0].select("key", F.explode(found).alias("value"), *TAIL_NAMES)


def lower_merge(node: Node, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Put all inputs together."""
    merged = inputs[0]
    for each in inputs[1:]:
        merged = merged.union(each)
    return merged


def lower_repartition(node: Repartition, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Bring what has one key to one place."""
    if node.partitions is None:
        return inputs[0].repartition("key")
    return inputs[0].repartition(node.partitions, "key")
