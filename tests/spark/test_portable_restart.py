"""`portable=true`: a batch that was half committed when everything was killed is divided into tasks as it was, whatever
`minPartitions` says after the restart. So each row is there once.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client.blocking import Admin, Consumer, Producer
from ottla.client.record import TopicPartition
from ottla.testing import Broker
from tests.peers.driver import SHORT_LIVED, SparkDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4_000
SECONDS_MAX = 100
COMMITTED = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}


def copying(
    spark: "SparkSession",
    bootstrap: str,
    source: str,
    target: str,
    checkpoint: str,
    partitions: int,
    gate: str,
) -> int:
    """Start to copy a topic, in tasks of which the last waits as long as the gate is there; return how many tasks there
    are at most.
    """
    from collections.abc import Iterator

    import pyarrow as pa

    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            while Path(gate).exists() and any(
                int(each.as_py()) == ROWS - 1 for each in batch.column("value")
            ):
                time.sleep(0.05)
            yield batch

    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": source, "startingOffsets": "earliest"}
    frame = spark.readStream.format("ottla").options(**options, minPartitions=str(partitions)).load()
    values = frame.selectExpr("cast(value as string) as value").mapInArrow(held, "value string")
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": target, "portable": "true"}
    writer = values.writeStream.format("ottla").options(**sink).option("checkpointLocation", checkpoint)
    query: Any = writer.trigger(availableNow=True).start()
    spark._query = query  # type: ignore[attr-defined]
    return partitions


def finished(spark: "SparkSession") -> bool:
    """Wait until it is done."""
    query = spark._query  # type: ignore[attr-defined]
    return bool(query.awaitTermination(SECONDS_MAX))


def committed(broker: Broker, topic: str) -> list[int]:
    """What a reader of committed records finds."""
    with Consumer(broker.bootstrap, **COMMITTED) as consumer:
        places = [TopicPartition(topic, each) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[int] = []
        while any(consumer.position(each) < ends[each] for each in places):
            found += [int(each.value) for each in consumer.poll(timeout=0.2)]
        return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("before", "after"), [(4, 1), (2, 6)])
def test_a_batch_half_committed_is_divided_as_it_was(
    on_spark: None, broker: Broker, topic_name: str, tmp_path: Path, before: int, after: int
) -> None:
    source, target, gate = f"{topic_name}-in", f"{topic_name}-out", tmp_path / "gate"
    gate.touch()
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(source, partitions=1)
        admin.topics.create(target, partitions=2)
    with Producer(broker.bootstrap) as producer:
        for n in range(ROWS):
            producer.send(source, str(n).encode())
    given = (broker.bootstrap, source, target, str(tmp_path / "checkpoint"))
    with SparkDriver(tmp_path / "one", SHORT_LIVED, master=f"local[{before}]", ottla=True) as driver:
        driver.call(copying, *given, before, str(gate))
        until = time.monotonic() + SECONDS_MAX
        while len(found := committed(broker, target)) < ROWS * (before - 1) // before - 1:
            assert time.monotonic() < until, f"{len(found)} rows are there:\n{driver.last_words()}"
            time.sleep(0.2)
        driver.kill()
    half = committed(broker, target)
    assert 0 < len(half) < ROWS and len(set(half)) == len(half)
    gate.unlink()
    with SparkDriver(tmp_path / "two", SHORT_LIVED, ottla=True) as driver:
        driver.call(copying, *given, after, str(gate))
        assert driver.call(finished), driver.last_words()
    found = committed(broker, target)
    assert sorted(found) == list(range(ROWS)), f"{len(found)} rows, {len(set(found))} of them different"
