"""What a user of Spark's own Kafka connector does, as functions for a `SparkDriver`.

Rows come back as lists: key, value, topic, partition, offset, timestamp in ms, timestampType, and headers where asked.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = dict[str, str]
COLUMNS = (
    "decode(key, 'UTF-8')",
    "decode(value, 'UTF-8')",
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp)",
    "timestampType",
)
HEADERS = "transform(headers, each -> array(each.key, decode(each.value, 'UTF-8')))"


def read(spark: "SparkSession", options: Options) -> list[list[Any]]:
    """A batch read, as plain rows."""
    return _rows(spark.read.format("kafka").options(**options).load())


def tasks(spark: "SparkSession", options: Options) -> int:
    """How many tasks a batch read is cut into."""
    return spark.read.format("kafka").options(**options).load().rdd.getNumPartitions()


def read_stream(spark: "SparkSession", options: Options, checkpoint: str) -> list[list[list[Any]]]:
    """All that is there now, by Trigger.AvailableNow, one list of rows a micro-batch."""
    batches: list[list[list[Any]]] = []

    def keep(frame: "DataFrame", _: int) -> None:
        batches.append(_rows(frame))

    stream = spark.readStream.format("kafka").options(**options).load()
    query = (
        stream.writeStream.foreachBatch(keep)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def write(spark: "SparkSession", bootstrap: str, rows: list[list[Any]], topic: str | None = None) -> None:
    """A batch write of (topic, partition, key, value, headers), or to one topic."""
    kinds = "topic string, partition int, key string, value string, headers array<struct<key string, value binary>>"
    given = [
        (*row[:4], [(name, text.encode()) for name, text in row[4]] if row[4] is not None else None)
        for row in rows
    ]
    frame = spark.createDataFrame(given, kinds)
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer = writer.option("includeHeaders", "true")
    (writer if topic is None else writer.option("topic", topic)).save()


def copy_stream(spark: "SparkSession", bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """A streaming copy by Spark's own source and its own sink."""
    stream = (
        spark.readStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": source, "startingOffsets": "earliest"})
        .load()
    )
    query = (
        stream.select("key", "value", "partition")
        .writeStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": bootstrap, "topic": target, "checkpointLocation": checkpoint})
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _rows(frame: "DataFrame") -> list[list[Any]]:
    wanted = COLUMNS + ((HEADERS,) if "headers" in frame.columns else ())
    return sorted((list(row) for row in frame.selectExpr(*wanted).collect()), key=lambda row: row[2:5])
