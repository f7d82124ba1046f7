"""Records of a topic as they come become records of a stream: decoded, or set apart.

A record that cannot be read goes to the dead-letter topic where there is one. Otherwise the query fails with its topic,
partition and offset, nothing is committed, and it is read again when the query starts again.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ottla.streams.errors import FunctionFailed, Unreadable
from ottla.streams.lowering.calling import caller, loader
from ottla.streams.lowering.columns import computed, once
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.datatypes import arrow_type, spark_type
from ottla.streams.lowering.decoding import decodable, decoded, parsed
from ottla.streams.lowering.envelope import TAIL, TAIL_NAMES, schema
from ottla.streams.lowering.failing import failing, record
from ottla.streams.lowering.steps import OFFERED
from ottla.streams.plan.function import Function
from ottla.streams.plan.sources import Source, TableSource
from ottla.streams.record_fields import NO_TIME, TIMESTAMP_MAX, timestamp_ms
from ottla.streams.types.codec import plain_decoder
from ottla.streams.types.serde import Serde
from ottla.streams.types.type import Instant

_HALVES = ("key", "value")
# The headers of Kafka Streams' own dead letters.
_HEADER = "__streams.errors."
EXCEPTION = f"{Unreadable.__module__}.{Unreadable.__qualname__}"


def lower_source(node: Source, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Read a topic."""
    return readable(decode(node, context), node, context)


def readable(frame: DataFrame, node: Source, context: Context) -> DataFrame:
    """Return the records of what `decode` gave that can be read. Where others have no place to go, they fail."""
    if context.dead_letters is not None:
        frame = frame.where(F.col("reason").isNull())
        frame = frame.select(*(once(F.col(half)).alias(half) for half in _HALVES), *TAIL_NAMES)
    else:
        good = F.col("reason").isNull()
        frame = frame.select(
            *(once(F.when(good, F.col(half)).otherwise(_complaint(node))).alias(half) for half in _HALVES),
            *TAIL_NAMES,
        )
    return frame if node.timestamp is None else _timestamped(frame, node)


def lower_table_source(node: TableSource, inputs: list[DataFrame], context: Context) -> DataFrame:
    """Read a topic whose records are the changes of a table."""
    from ottla.streams.lowering.tables import lower_to_table

    return lower_to_table(node, [lower_source(node, inputs, context)], context)


def letter_columns(topic: str) -> dict[str, Column]:
    """Return the row for a topic that one of what `decode` gave becomes, where it cannot be read."""
    texts = {
        "exception": F.lit(EXCEPTION),
        "message": F.col("reason"),
        "stacktrace": F.lit(""),
        "topic": F.col("topic"),
        "partition": F.col("partition").cast("string"),
        "offset": F.col("offset").cast("string"),
    }
    added = F.array(
        *(
            F.struct(F.lit(_HEADER + name).alias("key"), text.cast("binary").alias("value"))
            for name, text in texts.items()
        )
    )
    empty = F.array().cast("array<struct<key:string,value:binary>>")
    return {
        "topic": F.lit(topic),
        "key": F.col("raw_key"),
        "value": F.col("raw_value"),
        "headers": F.concat(F.coalesce(F.col("headers"), empty), added),
        "timestamp": F.col("timestamp"),
    }


def told(reason: str, topic: str, partition: int, offset: int) -> list[tuple[str, bytes | None]]:
    """Return the headers that a dead letter gets: as `letter_columns` has them."""
    texts = {
        "exception": EXCEPTION,
        "message": reason,
        "stacktrace": "",
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
    }
    return [(_HEADER + name, text.encode()) for name, text in texts.items()]


def clock(node: Source) -> Callable[[Any, Any], int] | None:
    """Return what time a record of a source is of by its own key and value, both plain; None where it has its own."""
    function = node.timestamp
    if function is None:
        return None
    call, name, place = caller(function, OFFERED, node.name), node.name, function.place
    load_key, load_value = loader(node.key), loader(node.value)
    return lambda key, value: timestamp_ms(call(load_key(key), load_value(value)), name, place)


def _complaint(node: Source) -> Column:
    return F.raise_error(
        F.concat(
            F.lit(f"{node.name}: the record "),
            record(),
            F.lit(" cannot be read: "),
            F.col("reason"),
        )
    )


def decode(node: Source, context: Context) -> DataFrame:
    """Return key, value, reason, raw_key, raw_value and the rest of the envelope."""
    raw = context.read(node).select(
        F.col("key").alias("raw_key"),
        F.col("value").alias("raw_value"),
        F.unix_millis(F.col("timestamp")).alias("timestamp"),
        "headers",
        "topic",
        "partition",
        "offset",
    )
    if not (decodable(node.key_serde) and decodable(node.value_serde)):
        return _read_by_python(raw, node)
    serdes = dict(zip(_HALVES, (node.key_serde, node.value_serde), strict=True))
    found = raw.select(
        "*", *(parsed(serde, F.col(f"raw_{half}")).alias(f"parsed_{half}") for half, serde in serdes.items())
    )
    halves = {
        half: decoded(serde, F.col(f"raw_{half}"), F.col(f"parsed_{half}")) for half, serde in serdes.items()
    }
    reasons = [F.concat(F.lit(f"{half}: "), each.reason) for half, each in halves.items()]
    return found.select(
        *(each.value.cast(spark_type(serdes[half].type)).alias(half) for half, each in halves.items()),
        F.coalesce(*reasons).alias("reason"),
        "raw_key",
        "raw_value",
        *TAIL_NAMES,
    )


def _read_by_python(raw: DataFrame, node: Source) -> DataFrame:
    halves = [
        _Half(half, serde) for half, serde in zip(_HALVES, (node.key_serde, node.value_serde), strict=True)
    ]
    wanted = StructType(
        [
            StructField("key", spark_type(node.key)),
            StructField("value", spark_type(node.value)),
            StructField("reason", StringType()),
            StructField("raw_key", BinaryType()),
            StructField("raw_value", BinaryType()),
            *TAIL,
        ]
    )
    names = wanted.names

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            reasons: list[str | None] = [None] * batch.num_rows
            columns = {each.name: each.column(batch.column(f"raw_{each.name}"), reasons) for each in halves}
            columns["reason"] = pa.array(reasons, pa.string())
            yield pa.RecordBatch.from_arrays(
                [columns[name] if name in columns else batch.column(name) for name in names], names=names
            )

    return raw.mapInArrow(batches, wanted)


class _Half:
    """The keys or the values of records, read by Python."""

    def __init__(self, name: str, serde: Serde) -> None:
        self.name = name
        self._decode = plain_decoder(serde)
        self._type = arrow_type(serde.type)

    def column(self, data: Any, reasons: list[str | None]) -> Any:
        """Return the column of what could be read; why the rest could not is put down in `reasons`."""
        found: list[Any] = []
        for n, each in enumerate(data.to_pylist()):
            value = None
            if each is not None:
                try:
                    value = self._decode(each)
                except Unreadable as error:
                    reasons[n] = reasons[n] or f"{self.name}: {error.args[0]}"
            found.append(value)
        return pa.array(found, self._type)


def _timestamped(frame: DataFrame, node: Source) -> DataFrame:
    function = node.timestamp
    assert function is not None
    if function.expression is not None:
        return frame.withColumn("timestamp", _checked(function, node.name))
    call = caller(function, OFFERED, node.name)
    load_key, load_value = loader(node.key), loader(node.value)
    place, names = function.place, ["key", "value", *TAIL_NAMES]

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            times = []
            pairs = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
            for n, (key, value) in enumerate(pairs):
                try:
                    times.append(timestamp_ms(call(load_key(key), load_value(value)), node.name, place))
                except FunctionFailed as failed:
                    where = [batch.column(name)[n].as_py() for name in ("topic", "partition", "offset")]
                    raise failed.located(*where) from failed.__cause__
            columns = [batch.column(name) for name in names]
            columns[names.index("timestamp")] = pa.array(times, pa.int64())
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return frame.mapInArrow(batches, schema_of_stream(node))


def schema_of_stream(node: Source) -> StructType:
    """Return the schema of a source's records, whether they are a stream or about to become a table."""
    return StructType([each for each in schema(node).fields if each.name != "old"])


def _checked(function: Function, operator: str) -> Column:
    """The time that a traced function says, in milliseconds, which fails where it is none."""
    found = computed(function, {"key": F.col("key"), "value": F.col("value")}, operator, narrowed=False)
    if isinstance(function.result, Instant):
        found = F.unix_millis(found)
    none = failing(function, operator).because(found, NO_TIME)
    return F.when(found.between(0, TIMESTAMP_MAX), found.cast("bigint")).otherwise(none.cast("bigint"))
