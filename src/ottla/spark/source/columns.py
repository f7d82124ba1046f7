"""The columns of the source: those of Spark's own Kafka source, with its names and types, and in its order.

PySpark's `to_arrow_schema` makes the same Arrow schema of them; a test compares the two, since Spark takes no other.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.source.options import parse
from ottla.spark.source.refusal import OptionError


class Column(NamedTuple):
    """A column, for Spark and for Arrow."""

    spark: DataType
    arrow: pa.DataType


_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

COLUMNS: dict[str, Column] = {
    "key": Column(BinaryType(), pa.binary()),
    "value": Column(BinaryType(), pa.binary()),
    "topic": Column(StringType(), pa.string()),
    "partition": Column(IntegerType(), pa.int32()),
    "offset": Column(LongType(), pa.int64()),
    "timestamp": Column(TimestampType(), pa.timestamp("us", tz="UTC")),
    "timestampType": Column(IntegerType(), pa.int32()),
    "headers": Column(ArrayType(_HEADER), HEADERS),
}


def source_schema(options: Mapping[str, str]) -> StructType:
    """Return the schema of a read with these options, which are checked."""
    return spark_schema(parse(options).columns)


def spark_schema(columns: Sequence[str]) -> StructType:
    """Return the schema of these columns."""
    return StructType([StructField(name, COLUMNS[name].spark) for name in columns])


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the same for Arrow."""
    return pa.schema([(name, COLUMNS[name].arrow) for name in columns])


def check_schema(schema: StructType, columns: Sequence[str]) -> None:
    """Refuse a schema that somebody gave and that is not that of the columns."""
    ours = [(name, COLUMNS[name].spark) for name in columns]
    if [(field.name, field.dataType) for field in schema.fields] != ours:
        raise OptionError(
            f"the schema of the source is fixed; it cannot be {schema.simpleString()}",
            hint="leave out .schema(…), and choose columns by the option columns",
        )
