"""The sink in Spark's own hands: columns, modes, restarts, processes that are killed, and what it says of mistakes."""

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from confluent_kafka import Producer
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession, functions

from ottla.spark import SparkFailure, write_batch
from ottla.spark.datasource import OttlaSource
from ottla.spark.sink.checkpoint import planned_ms
from ottla.spark.sink.each_batch import _planned_ms, each_batch
from ottla.spark.sink.stream import StreamWriter
from ottla.testing import Broker
from ottla.world.disk import RealDisk
from tests.spark.sink_stage import Topics

STREAM_SECONDS = 90


@pytest.fixture(scope="module")
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def topic(topics: Topics, topic_name: str) -> str:
    return topics.make(topic_name, 2)


class Inbox:
    """A folder that a stream reads: a file is a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder / "inbox"
        self._folder.mkdir()
        self.checkpoint = folder / "checkpoint"
        self._files = 0

    def put(self, *words: str) -> None:
        path = self._folder / f"{self._files:04}.json"
        path.write_text("".join(json.dumps({"value": word}) + "\n" for word in words))
        # Files are read in the order of their times.
        os.utime(path, (1_000_000 + self._files, 1_000_000 + self._files))
        self._files += 1

    def stream(self) -> DataFrame:
        return (
            self._spark.readStream.schema("value string")
            .option("maxFilesPerTrigger", 1)
            .json(str(self._folder))
        )

    def forget_commit(self, batch_id: int) -> None:
        """Have Spark not know that it was through with a batch."""
        (self.checkpoint / "commits" / str(batch_id)).unlink()
        (self.checkpoint / "commits" / f".{batch_id}.crc").unlink(missing_ok=True)


@pytest.fixture
def inbox(spark: SparkSession, tmp_path: Path) -> Inbox:
    return Inbox(spark, tmp_path)


def drain(writer: Any, checkpoint: Path) -> str:
    """Run a query over what is there, and return its id."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(STREAM_SECONDS)
    assert query.exception() is None
    return str(query.id)


def to(writer: Any, broker: Broker, topic: str, name: str = "ottla") -> Any:
    return writer.format(name).option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic)


def test_everything_a_row_can_have(
    spark: SparkSession, broker: Broker, topics: Topics, topic_name: str
) -> None:
    one, two = topics.make(f"{topic_name}-one", 3), topics.make(f"{topic_name}-two", 3)
    moment = datetime(2024, 5, 17, 12, 30, 15, 123_000, tzinfo=UTC)
    frame = spark.createDataFrame(
        [
            (one, b"k", b"v", 2, [("h", b"1"), ("i", None)], moment),
            (two, None, None, None, None, None),
            (one, b"key", b"w", None, [], None),
        ],
        "topic string, key binary, value binary, partition int, "
        "headers array<struct<key: string, value: binary>>, timestamp timestamp",
    )
    frame.write.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap).mode("append").save()
    found = {message.value(): message for name in (one, two) for message in topics.messages(name)}
    assert found.keys() == {b"v", None, b"w"}
    first = found[b"v"]
    assert (first.topic(), first.partition(), first.key(), first.headers()) == (
        one,
        2,
        b"k",
        [("h", b"1"), ("i", None)],
    )
    assert first.timestamp() == (1, int(moment.timestamp() * 1000))
    assert found[None].topic() == two
    assert found[b"w"].headers() is None
    # As Kafka's own clients have it.
    other = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    other.produce(one, b"other", b"key")
    assert other.flush(20) == 0
    (theirs,) = [message for message in topics.messages(one) if message.value() == b"other"]
    assert found[b"w"].partition() == theirs.partition()


def test_strings_of_any_script(spark: SparkSession, broker: Broker, topics: Topics, topic: str) -> None:
    words = ["größer", "日本語", "", "𝄞"]
    frame = spark.createDataFrame([(word,) for word in words], "value string")
    to(frame.coalesce(1).write.mode("append"), broker, topic).save()
    assert sorted(topics.read(topic)) == sorted(words)


def test_many_rows_in_many_tasks(spark: SparkSession, broker: Broker, topics: Topics, topic: str) -> None:
    frame = spark.range(0, 50_000, 1, 5).select(
        functions.col("id").cast("string").alias("key"), functions.lpad("id", 100, "0").alias("value")
    )
    to(frame.write.mode("append"), broker, topic).option("kafka.compression.type", "lz4").save()
    found = [int(value) for value in topics.read(topic)]
    assert len(found) == 50_000
    assert set(found) == set(range(50_000))


def test_an_empty_frame(spark: SparkSession, broker: Broker, topics: Topics, topic: str) -> None:
    to(spark.createDataFrame([], "value string").write.mode("append"), broker, topic).save()
    assert topics.read(topic, committed=False) == []


def test_a_stream(inbox: Inbox, broker: Broker, topics: Topics, topic: str) -> None:
    inbox.put("a", "b")
    inbox.put("c")
    query_id = drain(to(inbox.stream().writeStream, broker, topic), inbox.checkpoint)
    assert sorted(topics.read(topic)) == ["a", "b", "c"]
    inbox.put("d")
    assert drain(to(inbox.stream().writeStream, broker, topic), inbox.checkpoint) == query_id
    assert sorted(topics.read(topic)) == ["a", "b", "c", "d"]
    assert {mark for _, mark in topics.marks(f"ottla-{query_id}").values()} >= {f"ottla:{query_id}:2"}


def test_a_batch_that_spark_has_forgotten(inbox: Inbox, broker: Broker, topics: Topics, topic: str) -> None:
    inbox.put("a", "b")
    inbox.put("c")
    drain(to(inbox.stream().writeStream, broker, topic), inbox.checkpoint)
    inbox.forget_commit(1)
    inbox.put("d")
    drain(to(inbox.stream().repartition(3).writeStream, broker, topic), inbox.checkpoint)
    assert sorted(topics.read(topic)) == ["a", "b", "c", "d"]


def test_a_copy_commits_the_offsets_of_its_source(
    spark: SparkSession, broker: Broker, topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    source, target = topics.make(f"{topic_name}-in"), topics.make(f"{topic_name}-out")
    to(
        spark.range(0, 100, 1, 1).selectExpr("string(id) AS value").write.mode("append"), broker, source
    ).save()
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    writer = to(rows.writeStream, broker, target)
    query_id = drain(writer, tmp_path / "checkpoint")
    assert len(topics.read(target)) == 100
    # The last is the mark of the transaction, which the source has passed over.
    assert topics.marks(f"ottla-{query_id}") == {(source, 0): (101, f"ottla:{query_id}:0")}


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_counts(inbox: Inbox, broker: Broker, topics: Topics, topic: str, mode: str) -> None:
    def counts() -> Any:
        counted = inbox.stream().groupBy("value").count()
        rows = counted.select(functions.concat_ws("=", "value", "count").alias("value"))
        write = each_batch(kafka_bootstrap_servers=broker.bootstrap, topic=topic)
        return rows.writeStream.outputMode(mode).foreachBatch(write)

    inbox.put("a", "b", "a")
    inbox.put("b")
    query_id = drain(counts(), inbox.checkpoint)
    expected = {"update": ["a=2", "b=1", "b=2"], "complete": ["a=2", "a=2", "b=1", "b=2"]}[mode]
    assert sorted(topics.read(topic)) == expected
    inbox.forget_commit(1)
    drain(counts(), inbox.checkpoint)
    assert sorted(topics.read(topic)) == expected
    assert topics.marks(f"ottla-{query_id}-{topic}")


def test_when_a_batch_was_planned(inbox: Inbox) -> None:
    """What `write_batch` asks Spark for is what Spark has written down."""
    asked: dict[int, int | None] = {}

    def ask(frame: DataFrame, batch_id: int) -> None:
        session = frame.sparkSession
        query_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query_id is not None
        asked[batch_id] = _planned_ms(session, query_id, batch_id)

    inbox.put("a")
    inbox.put("b")
    drain(inbox.stream().writeStream.foreachBatch(ask), inbox.checkpoint)
    assert asked == {number: planned_ms(RealDisk(), str(inbox.checkpoint), number) for number in (0, 1)}
    assert None not in asked.values()


def test_two_sinks_of_one_stream(inbox: Inbox, broker: Broker, topics: Topics, topic_name: str) -> None:
    one, two = topics.make(f"{topic_name}-one"), topics.make(f"{topic_name}-two")

    def write(frame: DataFrame, batch_id: int) -> None:
        write_batch(frame, batch_id, kafka_bootstrap_servers=broker.bootstrap, topic=one)
        write_batch(frame, batch_id, kafka_bootstrap_servers=broker.bootstrap, topic=two)

    inbox.put("a")
    drain(inbox.stream().writeStream.foreachBatch(write), inbox.checkpoint)
    assert topics.read(one) == topics.read(two) == ["a"]


def test_one_name_for_two_sinks(inbox: Inbox, broker: Broker, topic: str) -> None:
    def write(frame: DataFrame, batch_id: int) -> None:
        for _ in range(2):
            write_batch(frame, batch_id, kafka_bootstrap_servers=broker.bootstrap, topic=topic)

    inbox.put("a")
    with pytest.raises(Exception, match="give each of them an option transactionalId of its own"):
        drain(inbox.stream().writeStream.foreachBatch(write), inbox.checkpoint)


class MortalWriter(StreamWriter):
    """A writer whose process is killed in the middle of a commit, if somebody has said when."""

    def __init__(self, options: Any, schema: Any, overwrite: bool) -> None:
        self._death = Path(options["death"])
        super().__init__(
            {name: value for name, value in options.items() if name != "death"}, schema, overwrite
        )

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        if not self._death.exists():
            return super().commit(messages, batchId)
        when = self._death.read_text()
        self._death.unlink()
        from ottla.spark.sink.carrier import Carrier

        original = Carrier.commit

        async def dying(carrier: Carrier) -> None:
            if when == "after":
                await original(carrier)
            os.kill(os.getpid(), signal.SIGKILL)

        Carrier.commit = dying  # type: ignore[method-assign]
        return super().commit(messages, batchId)


class MortalSink(OttlaSource):
    """The format with such writers."""

    @classmethod
    def name(cls) -> str:
        return "mortal"

    def streamWriter(self, schema: Any, overwrite: bool) -> MortalWriter:
        return MortalWriter(self.options, schema, overwrite)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_committing_process_is_killed(
    spark: SparkSession, inbox: Inbox, broker: Broker, topics: Topics, topic: str, tmp_path: Path, when: str
) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(MortalSink)
    death = tmp_path / "death"

    def writer() -> Any:
        return to(inbox.stream().writeStream, broker, topic, "mortal").option("death", str(death))

    inbox.put("a", "b")
    drain(writer(), inbox.checkpoint)
    inbox.put("c", "d")
    death.write_text(when)
    with pytest.raises(SparkFailure, match="a Python process of Spark's died"):
        drain(writer(), inbox.checkpoint)
    assert not death.exists()
    assert sorted(topics.read(topic)) == (["a", "b"] if when == "before" else ["a", "b", "c", "d"])
    inbox.put("e")
    drain(writer(), inbox.checkpoint)
    assert sorted(topics.read(topic)) == ["a", "b", "c", "d", "e"]


def frame_of(spark: SparkSession, **columns: str) -> DataFrame:
    return spark.range(1).select(*(functions.expr(text).alias(name) for name, text in columns.items()))


MISTAKES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "no value": ({"key": "'k'"}, {}, "the rows have no column value"),
    "a wrong type": ({"value": "1"}, {}, "the column value is int"),
    "no topic": ({"value": "'v'"}, {"topic": ""}, "nothing says which topic the rows go to"),
    "an unknown option": ({"value": "'v'"}, {"topik": "x"}, "did you mean topic?"),
    "a partition that is not there": ({"value": "'v'", "partition": "7"}, {}, "names partition 7 of topic"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(spark: SparkSession, broker: Broker, topics: Topics, topic: str, mistake: str) -> None:
    columns, options, complaint = MISTAKES[mistake]
    writer = to(frame_of(spark, **columns).write.mode("append"), broker, topic)
    if options.pop("topic", None) == "":
        writer = (
            frame_of(spark, **columns)
            .write.format("ottla")
            .mode("append")
            .option("kafka.bootstrap.servers", broker.bootstrap)
        )
    with pytest.raises(SparkFailure) as raised:
        writer.options(**options).save()
    assert complaint in str(raised.value)
    assert "hint: " in str(raised.value)
    assert topics.read(topic, committed=False) == []


def test_overwriting(spark: SparkSession, broker: Broker, topic: str) -> None:
    with pytest.raises(SparkFailure, match="a topic cannot be overwritten"):
        to(frame_of(spark, value="'v'").write.mode("overwrite"), broker, topic).save()
