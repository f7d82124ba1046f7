"""Batches: what is in a topic comes out of Spark, all of it, once, and in Spark's own types."""

import datetime
import json
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.spark import SparkFailure
from tests.peers.deadline import eventually
from tests.spark.source_stage import Place, Values

pytest_plugins = ["tests.spark.source_fixtures"]


def test_every_column(spark: Any, place: Place, topic_name: str) -> None:
    place.make(topic_name, 2, retention_ms="-1")
    producer = place.producer()
    headers = [("a", b"1"), ("b", None)]
    producer.produce(topic_name, b"v0", b"k0", partition=0, timestamp=1_700_000_000_123, headers=headers)
    producer.produce(topic_name, None, b"k1", partition=1, timestamp=1_700_000_000_124)
    producer.flush()
    read = spark.read.format("ottla").options(**place.options(topic_name, includeHeaders="true")).load()
    first, second = [row.asDict(recursive=True) for row in read.orderBy("partition").collect()]
    moment = datetime.datetime.fromtimestamp(1_700_000_000.123)
    assert first == {
        "key": b"k0",
        "value": b"v0",
        "topic": topic_name,
        "partition": 0,
        "offset": 0,
        "timestamp": moment,
        "timestampType": 0,
        "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"]) == (b"k1", None, None)


def test_many_records_in_many_fetches(spark: Any, place: Place, topic_name: str) -> None:
    place.make(topic_name, 3)
    for partition in range(3):
        place.write(topic_name, *range(7000), partition=partition, batch_size=20_000)
    options = place.options(
        topic_name, columns="offset,value,partition", kafka__max__partition__fetch__bytes=50_000
    )
    read = spark.read.format("ottla").options(**options).load()
    assert read.columns == ["offset", "value", "partition"]
    assert read.rdd.getNumPartitions() == 3
    found = read.selectExpr(
        "count(*)", "count(distinct partition, offset)", "sum(cast(cast(value as string) as long) - offset)"
    ).first()
    assert tuple(found) == (21_000, 21_000, 0)
    # A task that is stopped early leaves a process that can be used again.
    assert len(read.limit(3).collect()) == 3
    assert read.count() == 21_000


def test_more_tasks_than_partitions(spark: Any, place: Place, topic_name: str) -> None:
    place.make(topic_name)
    place.write(topic_name, *range(1000))
    options = place.options(topic_name, minPartitions="4", columns="offset")
    read = spark.read.format("ottla").options(**options).load()
    assert read.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in read.collect()) == list(range(1000))


def test_fewer_tasks_than_partitions(spark: Any, place: Place, topic_name: str) -> None:
    """Small partitions share a task, unless told otherwise, and nothing of any is left out."""
    place.make(topic_name, 12)
    sizes = [30 * number for number in range(12)]  # eleven have something, of which five 200 or more
    for partition, size in enumerate(sizes):
        place.write(topic_name, *range(size), partition=partition)

    def read(**more: str) -> tuple[int, list[tuple[int, int]]]:
        options = place.options(topic_name, columns="partition,offset", **more)
        frame = spark.read.format("ottla").options(**options).load()
        return frame.rdd.getNumPartitions(), [tuple(row) for row in frame.collect()]

    for more, tasks in (({}, 9), ({"minRecordsPerPartition": "0"}, 11), ({"minPartitions": "1"}, 11)):
        found, rows = read(**more)
        assert found == tasks
        # Of a partition in the order of its offsets.
        for partition, size in enumerate(sizes):
            assert [offset for each, offset in rows if each == partition] == list(range(size))


def test_from_where_to_where(values: Values, place: Place, topic_name: str) -> None:
    place.make(topic_name, 2, retention_ms="-1")
    producer = place.producer()
    for n in range(5):
        producer.produce(topic_name, f"a{n}", partition=0, timestamp=1000 + n)
        producer.produce(topic_name, f"b{n}", partition=1, timestamp=1000 + 2 * n)
    producer.flush()

    def at(first: int, second: int) -> str:
        return json.dumps({topic_name: {"0": first, "1": second}})

    assert values(topic_name, startingOffsets=at(3, -2), endingOffsets=at(-1, 2)) == ["a3", "a4", "b0", "b1"]
    assert values(topic_name, startingTimestamp=1003, endingTimestamp=1004) == ["a3"]
    assert values(topic_name, startingOffsetsByTimestamp=at(1004, 1007)) == ["a4", "b4"]
    late = {"startingTimestamp": 1005, "startingOffsetsByTimestampStrategy": "latest"}
    assert values(topic_name, **late) == ["b3", "b4"]
    one = {"assign": json.dumps({topic_name: [1]}), "startingOffsets": json.dumps({topic_name: {"1": 4}})}
    assert values(topic_name, **one) == ["b4"]
    assert values(topic_name, subscribePattern=f"^{topic_name}$") == [
        f"{p}{n}" for p in "ab" for n in range(5)
    ]


def test_only_what_is_committed(values: Values, place: Place, topic_name: str) -> None:
    place.make(topic_name)
    producer = place.producer(transactional_id=topic_name)
    producer.init_transactions()
    for word, end in (("first", producer.commit_transaction), ("second", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic_name, word)
        producer.flush()
        end()
    # The range ends in a marker.
    assert values(topic_name) == ["first"]
    producer.begin_transaction()
    producer.produce(topic_name, "third")
    producer.flush()
    place.write(topic_name, "fourth")
    assert values(topic_name) == ["first"]
    assert values(topic_name, isolation="read_uncommitted") == ["first", "second", "third", "fourth"]
    producer.commit_transaction()
    assert values(topic_name) == ["first", "third", "fourth"]


def test_a_compacted_topic(spark: Any, values: Values, place: Place, topic_name: str) -> None:
    place.make(
        topic_name, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="0", max_compaction_lag_ms="100",
    )  # fmt: skip
    producer = place.producer()
    for n in range(30):
        producer.produce(topic_name, f"v{n}", f"k{n % 3}")
        producer.flush()
    producer.produce(topic_name, None, "k0")
    producer.flush()

    def cleaned() -> bool:
        # A segment is closed by a record that comes after its time.
        producer.produce(topic_name, "last", "k9")
        producer.flush()
        return len(values(topic_name)) < 12

    eventually(cleaned, seconds_max=60)
    found = values(topic_name)
    assert "v29" in found and "v0" not in found and found[-1] == "last"
    # Ranges that begin and end in holes.
    options = place.options(topic_name, minPartitions="8", columns="value")
    rows = spark.read.format("ottla").options(**options).load().collect()
    assert sorted(row.value.decode() for row in rows if row.value) == sorted(filter(None, found))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_was_compressed(values: Values, place: Place, topic_name: str, codec: str) -> None:
    place.make(topic_name)
    words = [f"{n}-" + "x" * 100 for n in range(500)]
    place.write(topic_name, *words, compression_type=codec)
    assert values(topic_name) == words


def test_an_empty_topic(spark: Any, values: Values, place: Place, topic_name: str) -> None:
    place.make(topic_name, 2)
    assert values(topic_name) == []
    assert values(topic_name, subscribePattern="no-topic-has-such-a-name") == []


@pytest.mark.parametrize(
    ("options", "words", "hint"),
    [
        ({"startingOffset": "earliest"}, "the source has no option startingoffset", "startingOffsets"),
        ({"startingOffsets": "latest"}, "a batch cannot begin at the end", "readStream"),
        ({"subscribe": "no-such-topic"}, "topic no-such-topic does not exist", "create it"),
        ({"kafka__group__id": "g"}, "does not take kafka.group.id", "groupId"),
        ({"columns": "keys"}, "'keys', which is no column", "key"),
    ],
)
def test_what_is_wrong_is_said(
    spark: Any,
    place: Place,
    options: dict[str, str],
    words: str,
    hint: str,
) -> None:
    given = place.options("unused", **options)
    with pytest.raises(SparkFailure) as raised:
        spark.read.format("ottla").options(**given).load().count()
    assert words in str(raised.value)
    assert hint in raised.value.hint


def test_what_retention_took(values: Values, place: Place, topic_name: str) -> None:
    place.make(topic_name)
    place.write(topic_name, *range(10))
    place.forget(topic_name, 0, 4)
    assert values(topic_name) == [str(n) for n in range(4, 10)]
    offsets = json.dumps({topic_name: {"0": 2}})
    with pytest.raises(SparkFailure, match="from offset 2, and begins at 4"):
        values(topic_name, startingOffsets=offsets)
    assert len(values(topic_name, startingOffsets=offsets, failOnDataLoss="false")) == 6
