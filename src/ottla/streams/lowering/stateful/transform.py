"""A DataFrame around an operator: pack the inputs, divide them by operator partition, transformWithState, unpack.

All in append mode and without Spark's watermarks, so that operators follow one another in one query, and the
exactly-once sink takes what comes out.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.envelope import schema
from ottla.streams.lowering.stateful.host import Frame, Host
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.parcels import PARCELS, RESULTS, TAIL, Packing, unpack
from ottla.streams.plan.node import Node
from ottla.streams.types.type import Type


def transform(
    node: Node,
    inputs: Sequence[DataFrame],
    context: Context,
    operator: Operator,
    *,
    keys: Sequence[Type] = (),
    ranks: Sequence[int] = (),
    values: bool = True,
    olds: bool = False,
) -> DataFrame:
    """Return what flows out of an operator.

    `keys` are the types of the inputs' keys where they are not those of the plan; `ranks` say which input goes first at
    equal times. Without `values` only records with key and value come in, and the values stay behind. With `olds` the
    value before each change comes in as well.
    """
    types = tuple(keys) or tuple(each.key for each in node.inputs)
    columns = ("key", *(("value",) if values else ()), *(("old",) if olds else ()), *TAIL)
    parcels = []
    for side, frame in enumerate(inputs):
        # What is not needed does not go to Python at all.
        given = frame if values else frame.where(F.col("key").isNotNull() & F.col("value").isNotNull())
        packing = Packing(side, types[side], context.partitions)
        parcels.append(given.select(*columns).mapInArrow(packing, PARCELS))
    surroundings = Frame(
        node.name,
        context.partitions,
        types,
        tuple(ranks) or tuple(range(len(inputs))),
        node.key,
        to_arrow_schema(schema(node), timezone="UTC").serialize().to_pybytes(),
        node.is_table and context.updates == "last",
    )
    results = (
        reduce(DataFrame.union, parcels)
        .groupBy("label")
        .transformWithState(
            Host(operator, surroundings),
            RESULTS,
            "append",
            _time_mode(operator, context),
        )
    )
    return results.mapInArrow(unpack, schema(node))


def _time_mode(operator: Operator, context: Context) -> str:
    # A query with timers by the wall asks for one micro-batch after another, and a test would never end.
    return "ProcessingTime" if operator.wall_clock and context.given is None else "None"


def stateless_table(node: Node, records: DataFrame) -> DataFrame:
    """Return the changes of a table whose old values nobody asks for."""
    return records.where(F.col("key").isNotNull()).withColumn(
        "old", F.lit(None).cast(schema(node)["value"].dataType)
    )
