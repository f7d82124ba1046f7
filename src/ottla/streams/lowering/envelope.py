"""What a DataFrame between operators looks like: one row a record, or a change.

V1  Columns are key, value, (old,) timestamp, headers, topic, partition, offset: these, in this order, and no others.
V2  `old` is there exactly where the operator is a table: the value before the change, null where there was none.
V3  topic and partition say which queue a record stands in, offset its place in it. Records of one queue are taken in
    the order of their offsets, those of one offset as they come; between queues the earliest timestamp goes first.
"""

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.plan.node import Node

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
# What every row has besides key, value and old.
TAIL = (
    StructField("timestamp", LongType()),
    StructField("headers", HEADERS),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
)
TAIL_NAMES = tuple(each.name for each in TAIL)


def schema(node: Node) -> StructType:
    """Return the schema of what flows out of an operator."""
    head = [StructField("key", spark_type(node.key)), StructField("value", spark_type(node.value))]
    if node.is_table:
        head.append(StructField("old", spark_type(node.value)))
    return StructType([*head, *TAIL])


def names(node: Node) -> tuple[str, ...]:
    """Return the columns of what flows out of an operator."""
    return ("key", "value", *(("old",) if node.is_table else ()), *TAIL_NAMES)


def conform(frame: DataFrame, node: Node) -> DataFrame:
    """Return a frame whose columns stand in the order of the envelope."""
    wanted = list(names(node))
    return frame if frame.columns == wanted else frame.select(*wanted)
