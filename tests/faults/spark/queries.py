"""The queries under fire, as functions for a `SparkDriver`. Each starts its query again whenever it fails.

`copy` is stateless: every record goes to the partition it came from. `count` keeps state: how often each key was there,
in update mode, written by `foreachBatch`. `app` is the same count by an app of ottla.streams, which tells of every
change. Rows of all are `batch line number`, see `history`.
"""

import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SOURCE = "source"
_FAILURES: list[str] = []


def start(spark: "SparkSession", kind: str, bootstrap: str, checkpoint: str, batch_rows: int) -> None:
    """Run a query for good, in a thread; the topic it writes to bears its name."""
    threading.Thread(target=_run, args=(spark, kind, bootstrap, checkpoint, batch_rows), daemon=True).start()


def failures(spark: "SparkSession") -> list[str]:
    """What ended a query so far."""
    return _FAILURES


def _run(spark: "SparkSession", kind: str, bootstrap: str, checkpoint: str, batch_rows: int) -> None:
    from ottla.spark import register

    register(spark)
    begin = {"copy": _copy, "count": _count, "app": _app}[kind]
    while True:
        try:
            begin(spark, bootstrap, checkpoint, batch_rows)
        except Exception as failure:  # noqa: BLE001 - whatever it was, it is told and tried again
            _FAILURES.append(f"{kind}: {failure}")
            print(getattr(failure, "details", ""), file=sys.stderr, flush=True)
            time.sleep(0.2)


def _read(spark: "SparkSession", bootstrap: str, batch_rows: int, **more: str) -> "DataFrame":
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": SOURCE,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(batch_rows),
        **more,
    }
    return spark.readStream.format("ottla").options(**options).load()


def _batch_number() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return str(context.getLocalProperty("streaming.sql.batchId"))


def _copy(spark: "SparkSession", bootstrap: str, checkpoint: str, batch_rows: int) -> None:
    frame = _read(spark, bootstrap, batch_rows, minPartitions="8")  # so that tasks fetch for themselves
    rows = frame.selectExpr("cast(value as string) as value", "partition")
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "copy", "checkpointLocation": checkpoint}
    stamped = rows.mapInArrow(_stamped, "value string, partition int")
    stamped.writeStream.queryName("copy").format("ottla").options(**options).start().awaitTermination()


def _stamped(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.compute as pc

    number = pa.scalar(_batch_number())
    for batch in batches:
        values = pc.binary_join_element_wise(number, batch.column("value"), " ")
        yield pa.RecordBatch.from_arrays([values, batch.column("partition")], ["value", "partition"])


def _count(spark: "SparkSession", bootstrap: str, checkpoint: str, batch_rows: int) -> None:
    from ottla.spark import write_batch

    def write(counts: "DataFrame", number: int) -> None:
        rows = counts.selectExpr("key", f"concat('{number} ', key, ' ', count) as value")
        write_batch(rows, number, **{"kafka.bootstrap.servers": bootstrap, "topic": "count"})

    frame = _read(spark, bootstrap, batch_rows)
    counts = frame.selectExpr("cast(key as string) as key").groupBy("key").count()
    writer = counts.writeStream.queryName("count").outputMode("update").foreachBatch(write)
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()


def _app(spark: "SparkSession", bootstrap: str, checkpoint: str, batch_rows: int) -> None:
    from ottla.streams import App

    app = App("app", bootstrap, checkpoint=checkpoint, source={"maxOffsetsPerTrigger": str(batch_rows)})
    counts = app.stream(SOURCE).group_by_key().count().to_stream()
    counts.map(_told, key=str, value=str).to("app")
    app.start(block=False).wait()


def _told(key: str, count: int) -> tuple[str, str]:
    return key, f"{_batch_number()} {key} {count}"
