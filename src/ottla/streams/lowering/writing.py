"""Records of a stream become rows for a topic: topic, partition, key, value, headers, timestamp, all as bytes."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.lowering.calling import caller, loader
from ottla.streams.lowering.columns import computed
from ottla.streams.lowering.decoding import decodable
from ottla.streams.lowering.envelope import HEADERS
from ottla.streams.lowering.steps import OFFERED
from ottla.streams.plan.function import Function
from ottla.streams.plan.sinks import To
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import Serde
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
    functions = [each for each in (node.extractor, node.partitioner) if each is not None]
    plain = all(each.expression is not None for each in functions)
    if not plain or not (encodable(node.key_serde) and encodable(node.value_serde)):
        return _by_python(node, frame)
    columns = row_columns(node, {"key": F.col("key"), "value": F.col("value")})
    return frame.select(*(columns[name].alias(name) for name in ROWS.names))


def row_columns(node: To, given: dict[str, Column]) -> dict[str, Column]:
    """Return the columns of the row that a sink writes of a key and a value, where no function must be called."""
    topic = F.lit(node.topic) if node.extractor is None else computed(node.extractor, given, node.name)
    if node.partitioner is None:
        partition = F.lit(None).cast("int")
    else:
        partition = computed(node.partitioner, given, node.name).cast("int")
    return {
        "topic": topic,
        "partition": partition,
        "key": encoded(node.key_serde, given["key"]),
        "value": encoded(node.value_serde, given["value"]),
        "headers": F.col("headers"),
        "timestamp": F.col("timestamp"),
    }


def encodable(serde: Serde) -> bool:
    """Return whether Columns can write it."""
    if serde.format == "windowed":
        assert isinstance(serde.type, WindowedKey)
        return encodable(_inner(serde))
    return decodable(serde)


def _inner(serde: Serde) -> Serde:
    from ottla.streams.types.serde import serde as serde_of

    assert isinstance(serde.type, WindowedKey)
    return serde_of(serde.type.of)


def encoded(serde: Serde, found: Column) -> Column:
    """Return the bytes of a value."""
    if serde.format == "bytes":
        return found
    if serde.format == "string" or isinstance(serde.type, Anything):
        return found.cast("binary")
    if serde.format == "boolean":
        return F.when(found, F.unhex(F.lit("01"))).when(~found, F.unhex(F.lit("00")))
    if serde.format in _DIGITS:
        return _big_endian(found, _DIGITS[serde.format])
    if serde.format == "windowed":
        assert isinstance(serde.type, WindowedKey)
        start, end = (_big_endian(found.getField(name), 16) for name in ("start", "end"))
        key = encoded(_inner(serde), found.getField("key"))
        return F.concat(key, end, start) if serde.type.session else F.concat(key, start)
    return _json(found)


def _big_endian(number: Column, digits: int) -> Column:
    # hex gives all sixteen digits of a negative number, and no leading zeros of others.
    return F.unhex(F.right(F.lpad(F.hex(number.cast("bigint")), 16, "0"), F.lit(digits)))


def _json(found: Column) -> Column:
    # Spark writes nothing but objects at the top, so what is none is taken out of one again.
    text = F.to_json(F.struct(found.alias("it")), _JSON)
    inner = F.substring(text, F.lit(len('{"it":') + 1), F.length(text) - F.lit(len('{"it":}')))
    return F.when(found.isNotNull(), inner.cast("binary"))


def _by_python(node: To, frame: DataFrame) -> DataFrame:
    load_key, load_value = loader(node.input.key), loader(node.input.value)
    encode_key, encode_value = encoder(node.key_serde), encoder(node.value_serde)
    topic_of, partition_of = _called(node.extractor, node.name), _called(node.partitioner, node.name)
    fixed, name = node.topic, node.name
    place = (node.extractor or node.partitioner).place if node.extractor or node.partitioner else name  # type: ignore[union-attr]

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            rows: dict[str, list[Any]] = {each: [] for each in ("topic", "partition", "key", "value")}
            pairs = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
            for n, pair in enumerate(pairs):
                key, value = load_key(pair[0]), load_value(pair[1])
                try:
                    rows["topic"].append(_text(topic_of(key, value), name, place) if topic_of else fixed)
                    rows["partition"].append(partition_of(key, value) if partition_of else None)
                    rows["key"].append(None if key is None else encode_key(key))
                    rows["value"].append(None if value is None else encode_value(value))
                except FunctionFailed as failed:
                    where = [batch.column(each)[n].as_py() for each in ("topic", "partition", "offset")]
                    raise failed.located(*where) from failed.__cause__
                except TypeMismatch as error:
                    raise FunctionFailed(name, place, str(error.args[0])) from None
            columns = [
                pa.array(rows["topic"], pa.string()),
                pa.array(rows["partition"], pa.int32()),
                pa.array(rows["key"], pa.binary()),
                pa.array(rows["value"], pa.binary()),
                batch.column("headers"),
                batch.column("timestamp"),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=ROWS.names)

    return frame.mapInArrow(batches, ROWS)


def _called(function: Function | None, operator: str) -> Any:
    return None if function is None else caller(function, OFFERED, operator)


def _text(found: Any, operator: str, place: str) -> str:
    if not isinstance(found, str) or not found:
        raise FunctionFailed(operator, place, f"{found!r:.100} is no name of a topic")
    return found
