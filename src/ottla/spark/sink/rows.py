"""The columns of rows that are written: which there may be, of which types, and where they are in a batch of Arrow's.

    value      string or binary             null for a tombstone
    key        string or binary             null for none
    topic      string                       unless the option topic says it for all
    partition  int                          null to have it chosen by the key, or by chance
    headers    array<struct<key: string, value: binary>>
    timestamp  timestamp                    null for now

Other columns are left alone, so that what was read can be written as it is.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.spark.sink.refusal import WrongColumns

_BYTES = (StringType, BinaryType)
_TYPES: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "value": (_BYTES, "string or binary"),
    "key": (_BYTES, "string or binary"),
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType,), "int"),
    "timestamp": ((TimestampType, TimestampNTZType), "timestamp"),
}
_HEADERS = "array<struct<key:string,value:binary>>"


class Rows(NamedTuple):
    """The columns of some rows; bytes are binary, all of one type, and times milliseconds, or one for all."""

    value: pa.Array
    key: pa.Array | None
    topic: pa.Array | None
    partition: pa.Array | None
    headers: pa.Array | None
    timestamp: NDArray[np.int64] | int


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raise WrongColumns unless rows of this schema can be written."""
    columns = {field.name: field.dataType for field in schema.fields}
    if "value" not in columns:
        have = ", ".join(columns) or "none"
        hint = 'name the column that is written, as in select(to_json(struct("*")).alias("value"))'
        raise WrongColumns(f"the rows have no column value; they have {have}", hint=hint)
    if topic is None and "topic" not in columns:
        raise WrongColumns(
            "nothing says which topic the rows go to", hint="set the option topic, or add a column topic"
        )
    for name, kind in columns.items():
        if name == "headers":
            _check_headers(kind)
        elif name in _TYPES and not isinstance(kind, _TYPES[name][0]) and not _is_absent(name, kind):
            raise WrongColumns(
                f"the column {name} is {kind.simpleString()}", hint=f"cast it to {_TYPES[name][1]}"
            )


def _is_absent(name: str, kind: DataType) -> bool:
    return isinstance(kind, NullType) and name != "topic"


def _check_headers(kind: DataType) -> None:
    if isinstance(kind, NullType):
        return
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        fields = [(each.name, each.dataType) for each in kind.elementType.fields]
        if [name for name, _ in fields] == ["key", "value"]:
            if isinstance(fields[0][1], StringType) and isinstance(fields[1][1], _BYTES):
                return
    raise WrongColumns(f"the column headers is {kind.simpleString()}", hint=f"make it {_HEADERS}")


def rows_of(batch: pa.RecordBatch, now_ms: int) -> Rows:
    """Return the columns of a batch; rows without a time are of now."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    value = columns["value"]
    found = {name: columns.get(name) for name in ("key", "topic", "partition", "headers", "timestamp")}
    # What is null everywhere need not be looked at row by row.
    found = {
        name: None if column is None or column.null_count == len(column) else column
        for name, column in found.items()
    }
    key = found["key"]
    wide = any(_is_wide(each) for each in (value, key) if each is not None)
    kind = pa.large_binary() if wide else pa.binary()
    return Rows(
        _bytes(value, kind),
        None if key is None else _bytes(key, kind),
        found["topic"],
        found["partition"],
        found["headers"],
        _times(found["timestamp"], now_ms),
    )


def _is_wide(column: pa.Array) -> bool:
    return bool(pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type))


def _bytes(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _times(column: pa.Array | None, now_ms: int) -> NDArray[np.int64] | int:
    if column is None:
        return now_ms
    times = (
        pc.floor_temporal(column, unit="millisecond")
        .cast(pa.timestamp("ms", column.type.tz))
        .cast(pa.int64())
    )
    found = np.asarray(pc.fill_null(times, now_ms))
    if int(found.min(initial=0)) < 0:
        hint = "Kafka's times begin in 1970: leave older ones null, or put them into the value"
        raise WrongColumns("the column timestamp has a time before 1970", hint=hint)
    return found
