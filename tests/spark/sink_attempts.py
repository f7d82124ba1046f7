"""A program of its own: tasks that fail half-way, and tasks that are overtaken by their doubles, on two executors.

    python -m tests.spark.sink_attempts <master> <bootstrap> <topic> <folder>

It prints, for each of two jobs, how many attempts of tasks there were.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from ottla.spark import register, session

ROWS, PARTS = 4000, 4
SLOW_SECONDS = 120.0


def trouble(folder: str, kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first attempt of one part fails, or takes for ever, when half of them are through."""
    context = TaskContext.get()
    assert context is not None
    Path(folder, f"{kind}-{context.partitionId()}-{context.attemptNumber()}").touch()
    for number, batch in enumerate(batches):
        if number == 1 and context.partitionId() == 1 and context.attemptNumber() == 0:
            if kind == "failing":
                raise RuntimeError("half of the rows were passed on")
            time.sleep(SLOW_SECONDS)
        yield batch


def troubled(spark: SparkSession, folder: str, kind: str, first: int) -> DataFrame:
    numbers = spark.range(first, first + ROWS, 1, PARTS).selectExpr("cast(id AS string) AS value")
    return numbers.mapInArrow(lambda batches: trouble(folder, kind, batches), "value string")


def main(master: str, bootstrap: str, topic: str, folder: str) -> None:
    spark = session(
        "attempts",
        master=master,
        **{
            "spark.executor.memory": "512m",
            "spark.speculation": "true",
            "spark.speculation.interval": "200ms",
            "spark.speculation.multiplier": "1.2",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.efficiency.enabled": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
        },
    )
    register(spark)
    for number, kind in enumerate(("failing", "slow")):
        frame = troubled(spark, folder, kind, number * ROWS)
        frame.write.format("ottla").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).mode(
            "append"
        ).save()
    spark.stop()
    attempts = {kind: len(list(Path(folder).glob(f"{kind}-*"))) for kind in ("failing", "slow")}
    print(json.dumps(attempts))


if __name__ == "__main__":
    main(*sys.argv[1:])
