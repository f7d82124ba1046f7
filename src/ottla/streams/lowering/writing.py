"""Records of a stream become rows for a topic: topic, partition, key, value, headers, timestamp, all as bytes."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ottla.streams.computing import called_because
from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.lowering.calling import caller, loader
from ottla.streams.lowering.columns import Columns, computed
from ottla.streams.lowering.envelope import HEADERS
from ottla.streams.lowering.failing import Failing, failing
from ottla.streams.lowering.steps import OFFERED
from ottla.streams.plan.function import Function
from ottla.streams.plan.sinks import To
from ottla.streams.record_fields import NO_PARTITION, NO_TOPIC, PARTITION_MAX, partition_number, topic_name
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import Serde
from ottla.streams.types.serde import serde as serde_of
from ottla.streams.types.struct import Anything, WindowedKey

ROWS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
        StructField("timestamp", LongType()),
    ]
)
_DIGITS = {"short": 4, "integer": 8, "long": 16}
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
}


def outgoing(node: To, frame: DataFrame) -> DataFrame:
    """Return the rows that a sink writes."""
    if is_called(node):
        return _by_python(node, frame)
    columns = row_columns(node, {"key": F.col("key"), "value": F.col("value")})
    return frame.select(*(columns[name].alias(name) for name in ROWS.names))


def row_columns(node: To, given: Columns) -> dict[str, Column]:
    """Return the columns of the row that a sink writes of a key and a value, where no function must be called."""
    fails = Failing(node.name, _place(node))
    topic = F.lit(node.topic) if node.extractor is None else _topic(node.extractor, given, node.name)
    if node.partitioner is None:
        partition = F.lit(None).cast("int")
    else:
        partition = _partition(node.partitioner, given, node.name)
    return {
        "topic": topic,
        "partition": partition,
        "key": encoded(node.key_serde, given["key"], fails),
        "value": encoded(node.value_serde, given["value"], fails),
        "headers": F.col("headers"),
        "timestamp": F.col("timestamp"),
    }


def _place(node: To) -> str:
    chooser = node.extractor or node.partitioner
    return node.name if chooser is None else chooser.place


def is_called(node: To) -> bool:
    """Return whether Python must write the rows of a sink, and so call its functions."""
    return called_because(node) is not None


def _topic(function: Function, given: Columns, operator: str) -> Column:
    found = computed(function, given, operator)
    fails = failing(function, operator)
    return (
        F.when(found.isNull(), fails.because(f"None{NO_TOPIC}"))
        .when(found == "", fails.because(f"''{NO_TOPIC}"))
        .otherwise(found)
    )


def _partition(function: Function, given: Columns, operator: str) -> Column:
    found = computed(function, given, operator)
    fails = failing(function, operator)
    wrong = fails.because(found, NO_PARTITION)
    return F.when((found < 0) | (found > PARTITION_MAX), wrong.cast("int")).otherwise(found.cast("int"))


def _inner(serde: Serde) -> Serde:
    assert isinstance(serde.type, WindowedKey)
    return serde_of(serde.type.of)


def encoded(serde: Serde, found: Column, fails: Failing) -> Column:
    """Return the bytes of a value, or a failure where it has none in its format."""
    if serde.format == "bytes":
        return found
    if serde.format == "string" or isinstance(serde.type, Anything):
        return found.cast("binary")
    if serde.format == "boolean":
        return F.when(found, F.unhex(F.lit("01"))).when(~found, F.unhex(F.lit("00")))
    if serde.format in _DIGITS:
        return _big_endian(found, _DIGITS[serde.format], fails, serde.format)
    if serde.format == "windowed":
        assert isinstance(serde.type, WindowedKey)
        start, end = (_big_endian(found.getField(name), 16, fails) for name in ("start", "end"))
        key = encoded(_inner(serde), found.getField("key"), fails)
        return F.concat(key, end, start) if serde.type.session else F.concat(key, start)
    return _json(found)


def _big_endian(number: Column, digits: int, fails: Failing, format: str = "long") -> Column:
    # hex gives all sixteen digits of a negative number, and no leading zeros of others.
    data = F.unhex(F.right(F.lpad(F.hex(number.cast("bigint")), 16, "0"), F.lit(digits)))
    if digits == 16:
        return data
    half = 1 << 4 * digits - 1
    wrong = fails.because(number, f" cannot be written as {format}")
    return F.when(~number.between(-half, half - 1), wrong).otherwise(data)


def _json(found: Column) -> Column:
    # Spark writes nothing but objects at the top, so what is none is taken out of one again.
    text = F.to_json(F.struct(found.alias("it")), _JSON)
    inner = F.substring(text, F.lit(len('{"it":') + 1), F.length(text) - F.lit(len('{"it":}')))
    return F.when(found.isNotNull(), inner.cast("binary"))


def _by_python(node: To, frame: DataFrame) -> DataFrame:
    load_key, load_value = loader(node.input.key), loader(node.input.value)
    row = row_maker(node)

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            rows = []
            pairs = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
            for n, (key, value) in enumerate(pairs):
                try:
                    rows.append(row(load_key(key), load_value(value)))
                except FunctionFailed as failed:
                    where = [batch.column(each)[n].as_py() for each in ("topic", "partition", "offset")]
                    raise failed.located(*where) from failed.__cause__
            columns = zip(*rows, strict=True) if rows else ((), (), (), ())
            types = (pa.string(), pa.int32(), pa.binary(), pa.binary())
            made = [pa.array(list(column), type) for column, type in zip(columns, types, strict=True)]
            made += [batch.column("headers"), batch.column("timestamp")]
            yield pa.RecordBatch.from_arrays(made, names=ROWS.names)

    return frame.mapInArrow(batches, ROWS)


def row_maker(node: To) -> Callable[[Any, Any], tuple[str | None, int | None, bytes | None, bytes | None]]:
    """Return a function from a key and a value to topic, partition, key and value of the row that a sink writes."""
    encode_key, encode_value = encoder(node.key_serde), encoder(node.value_serde)
    topic_of, partition_of = _called(node.extractor, node.name), _called(node.partitioner, node.name)
    fixed, name = node.topic, node.name
    place = _place(node)
    partition_place = place if node.partitioner is None else node.partitioner.place

    def row(key: Any, value: Any) -> tuple[str | None, int | None, bytes | None, bytes | None]:
        topic = topic_name(topic_of(key, value), name, place) if topic_of else fixed
        found = partition_of(key, value) if partition_of else None
        return (
            topic,
            partition_number(found, name, partition_place),
            _bytes(encode_key, key, name, place),
            _bytes(encode_value, value, name, place),
        )

    return row


def _called(function: Function | None, operator: str) -> Any:
    return None if function is None else caller(function, OFFERED, operator)


def _bytes(encode: Callable[[Any], bytes], given: Any, operator: str, place: str) -> bytes | None:
    try:
        return None if given is None else encode(given)
    except TypeMismatch as error:
        raise FunctionFailed(operator, place, str(error.args[0])) from None
