"""Programs that run unchanged on a laptop and on a cluster, as functions for a `SparkDriver`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def lines_of_descent(spark: "SparkSession") -> list[list[int]]:
    """For each of some tasks the process ids from the one it ran in up to the first of all."""
    frame = spark.range(0, 8, 1, 8).mapInArrow(_ancestors, "line string")
    return [[int(pid) for pid in row.line.split()] for row in frame.collect()]


def _ancestors(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for _ in batches:
        pid, line = os.getpid(), []
        while pid > 0:
            line.append(pid)
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pa.RecordBatch.from_pydict({"line": [" ".join(map(str, line))]})


def write_and_read(spark: "SparkSession", bootstrap: str, topic: str, rows: int) -> list[Any]:
    """A batch there and back: how many rows, how many different ones, how many partitions have some."""
    servers = {"kafka.bootstrap.servers": bootstrap}
    given = spark.range(0, rows, 1, 4).selectExpr("cast(id as string) as key", "rpad(id, 100, 'v') as value")
    given.write.format("ottla").options(**servers, topic=topic).mode("append").save()
    found = spark.read.format("ottla").options(**servers, subscribe=topic, minPartitions="4").load()
    return list(
        found.selectExpr("count(*)", "count(distinct value)", "count(distinct partition)").collect()[0]
    )


def copy_and_count(
    spark: "SparkSession", bootstrap: str, source: str, copy: str, counts: str, checkpoints: str
) -> None:
    """A stateless query and one with state, in small batches, until all that is there is done."""
    from ottla.spark import write_batch

    servers = {"kafka.bootstrap.servers": bootstrap}
    options = servers | {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "300"}
    frame = spark.readStream.format("ottla").options(**options).load()

    def write(changed: "DataFrame", number: int) -> None:
        write_batch(
            changed.selectExpr("key", "cast(count as string) as value"), number, **servers, topic=counts
        )

    both = [
        frame.select("key", "value", "partition")
        .writeStream.format("ottla")
        .options(**servers, topic=copy, checkpointLocation=f"{checkpoints}/copy"),
        frame.selectExpr("cast(key as string) as key")
        .groupBy("key")
        .count()
        .writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", f"{checkpoints}/counts"),
    ]
    for query in [each.trigger(availableNow=True).start() for each in both]:
        query.awaitTermination()


def committed_values(spark: "SparkSession", bootstrap: str, topic: str) -> list[list[str]]:
    """Key and value of every committed record."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    frame = spark.read.format("ottla").options(**options).load()
    return [list(row) for row in frame.selectExpr("cast(key as string)", "cast(value as string)").collect()]


def count_words(spark: "SparkSession", bootstrap: str, source: str, checkpoint: str) -> dict[str, int]:
    """An app of ottla.streams: the last count of each word."""
    from ottla.streams import App

    app = App("words", bootstrap, checkpoint=checkpoint)
    words = app.stream(source).flat_map_values(lambda line: line.split())
    words.group_by(lambda word: word).count().to(f"{source}-counts")
    return {record.key: record.value for record in app.run()}
