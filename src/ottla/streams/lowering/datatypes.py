"""Spark's and Arrow's words for our types."""

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import (
    Array,
    Boolean,
    Bytes,
    Day,
    Dictionary,
    Exact,
    Instant,
    Integer,
    Nullable,
    Real,
    Text,
    Type,
)

_SIMPLE: dict[Type, DataType] = {
    Text(): StringType(),
    Bytes(): BinaryType(),
    Boolean(): BooleanType(),
    Integer(8): ByteType(),
    Integer(16): ShortType(),
    Integer(32): IntegerType(),
    Integer(64): LongType(),
    Real(32): FloatType(),
    Real(64): DoubleType(),
    Instant(): TimestampType(),
    Day(): DateType(),
    Anything(): StringType(),
}


def spark_type(type: Type) -> DataType:
    """Return what Spark has a type as. Everything is nullable: Spark's not-null is a promise that nobody checks."""
    simple = _SIMPLE.get(type)
    if simple is not None:
        return simple
    if isinstance(type, Choice):
        return StringType()
    if isinstance(type, Exact):
        return DecimalType(type.precision, type.scale)
    if isinstance(type, Nullable):
        return spark_type(type.of)
    if isinstance(type, Array):
        return ArrayType(spark_type(type.of))
    if isinstance(type, Dictionary):
        return MapType(spark_type(type.key), spark_type(type.value))
    if isinstance(type, Struct):
        return StructType([StructField(each.name, spark_type(each.type)) for each in type.fields])
    if isinstance(type, Pair):
        return StructType([StructField(f"_{n}", spark_type(each)) for n, each in enumerate(type.parts, 1)])
    if isinstance(type, WindowedKey):
        return StructType(
            [
                StructField("key", spark_type(type.of)),
                StructField("start", LongType()),
                StructField("end", LongType()),
            ]
        )
    raise AssertionError(f"no Spark type for {type!r}")


def arrow_type(type: Type) -> pa.DataType:
    """Return what Arrow has a type as, on its way to and from Spark."""
    return to_arrow_type(spark_type(type), timezone="UTC")
