"""A count by Spark's own aggregation: the choice `native=True` of an app.

Spark counts without a Python process, and about twice as fast. But an aggregation of its own runs in `update` mode,
which nothing that remembers can follow, and which the stream writer cannot take: so it must be the only operator
that remembers, and its micro-batches are written by `write_batch`, in a transaction each as ever. What flows out is
the last count of each key in a micro-batch, in no order, without headers.
"""

from typing import TYPE_CHECKING

from ottla.streams.plan.node import Node
from ottla.streams.types.type import Real
from ottla.streams.types.walk import within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def native_count(node: Node, records: "DataFrame") -> "DataFrame":
    """Return the changes of a count, computed by Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    from ottla.streams.lowering.envelope import names, schema

    records = records.where(F.col("key").isNotNull() & F.col("value").isNotNull())
    results = [F.count("*").alias("value"), F.max("timestamp").alias("timestamp")]
    if any(isinstance(each, Real) for each in within(node.key)):
        # To Spark the two zeros are one group; their texts are two.
        said = records.groupBy(F.to_json(F.struct("key")).alias("said"))
        counted = said.agg(*results, F.any_value("key").alias("key"))
    else:
        counted = records.groupBy("key").agg(*results)
    known = {
        "topic": F.lit(node.name),
        "partition": F.lit(0),
        "offset": F.lit(0),
        "old": F.lit(None),
        "headers": F.lit(None),
    }
    types = schema(node)
    return counted.select(
        *(known.get(name, F.col(name)).cast(types[name].dataType).alias(name) for name in names(node))
    )
