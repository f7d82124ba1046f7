"""What a session of Spark is told to do, as functions for a `SparkDriver`. Each returns seconds and no rows.

`format` is "ottla" or "kafka". Both are given the same options, each at its own defaults but for what is named here; so
`ottla` reads committed records and writes exactly once, and Spark's own connector does neither.
"""

import shutil
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "coalesce(key, 'no key'), coalesce(value, 'no value'), topic, partition, offset, timestamp, timestampType"
)
_FRAMES: "dict[tuple[int, int, bool], DataFrame]" = {}
_QUERIES: dict[str, tuple[Any, str]] = {}


def _source(bootstrap: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}


def read(spark: "SparkSession", format: str, bootstrap: str, topic: str) -> float:
    """Every column of every record, in one batch."""
    frame = spark.read.format(format).options(**_source(bootstrap, topic)).load()
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def content(spark: "SparkSession", format: str, bootstrap: str, topic: str) -> list[Any]:
    """How many records there are, and a sum over all columns of all of them."""
    frame = spark.read.format(format).options(**_source(bootstrap, topic)).load()
    [found] = frame.selectExpr("count(*)", f"bit_xor(xxhash64({COLUMNS}))").collect()
    return list(found)


def stream(spark: "SparkSession", format: str, bootstrap: str, topic: str, batch_rows: int) -> list[float]:
    """The same in micro-batches, until all that is there is read: seconds, and rows."""
    with tempfile.TemporaryDirectory() as checkpoint:
        options = _source(bootstrap, topic) | {"maxOffsetsPerTrigger": str(batch_rows)}
        frame = spark.readStream.format(format).options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        began = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        return [seconds, sum(each["numInputRows"] for each in query.recentProgress)]


def write(
    spark: "SparkSession", format: str, bootstrap: str, topic: str, rows: int, size: int, keyed: bool
) -> float:
    """A batch of rows that lie in memory."""
    frame = _frame(spark, rows, size, keyed)
    writer = frame.write.format(format).mode("append")
    began = time.perf_counter()
    writer.options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic}).save()
    return time.perf_counter() - began


def _frame(spark: "SparkSession", rows: int, size: int, keyed: bool) -> "DataFrame":
    found = _FRAMES.get((rows, size, keyed))
    if found is None:
        value = f"rpad(cast(id as string), {size}, 'v') as value"
        key = ["cast(id % 10000 as string) as key"] if keyed else []
        found = spark.range(0, rows, 1, 4).selectExpr(*key, value).persist()
        found.count()
        _FRAMES[rows, size, keyed] = found
    return found


def committed(spark: "SparkSession", bootstrap: str, topic: str) -> list[int]:
    """How many records a read-committed reader finds, and how many different values."""
    options = _source(bootstrap, topic) | {"kafka.isolation.level": "read_committed"}
    frame = spark.read.format("kafka").options(**options).load()
    [found] = frame.selectExpr("count(*)", "count(distinct value)").collect()
    return list(found)


def copy(
    spark: "SparkSession", format: str, bootstrap: str, source: str, target: str, batch_rows: int
) -> float:
    """From topic to topic in micro-batches, until all that is there is copied."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = _copying(spark, format, bootstrap, source, target, checkpoint, batch_rows)
        began = time.perf_counter()
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - began


def start_copy(spark: "SparkSession", format: str, bootstrap: str, source: str, target: str) -> None:
    """Begin to copy from topic to topic as fast as batch can follow batch."""
    checkpoint = tempfile.mkdtemp()
    _QUERIES[format] = _copying(spark, format, bootstrap, source, target, checkpoint).start(), checkpoint


def stop_copy(spark: "SparkSession", format: str) -> float:
    """End that, and tell how long a batch took at the median, in milliseconds."""
    query, checkpoint = _QUERIES.pop(format)
    taken = sorted(
        each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]
    )
    query.stop()
    shutil.rmtree(checkpoint)
    return float(taken[len(taken) // 2]) if taken else 0.0


def _copying(
    spark: "SparkSession",
    format: str,
    bootstrap: str,
    source: str,
    target: str,
    checkpoint: str,
    batch_rows: int | None = None,
) -> Any:
    options = _source(bootstrap, source)
    if batch_rows is not None:
        options["maxOffsetsPerTrigger"] = str(batch_rows)
    frame = spark.readStream.format(format).options(**options).load()
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": target, "checkpointLocation": checkpoint}
    return frame.select("key", "value").writeStream.format(format).options(**sink)
