"""Spark's own Kafka connector on the server under test: what its users do, and what they get back."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compat.absence import skip_aloud
from tests.compat.chosen import MakeTopic
from tests.compat.clients import Confluent, Sample
from tests.compat.spark import own
from tests.peers.connector import VERSION, connector_jars
from tests.peers.driver import SHORT_LIVED, SparkDriver
from tests.peers.jars import KafkaAbsent

pytestmark = pytest.mark.long

# Old enough to be told from "now", young enough for retention to leave it alone.
MOMENT_MS = int(time.time() * 1000) - 3_600_000
PER_PARTITION = 50

Ask = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    """One session for the whole module."""
    try:
        settings = SHORT_LIVED | {"spark.jars": connector_jars()}
    except KafkaAbsent as absent:
        skip_aloud(f"Spark's Kafka connector {VERSION}: {absent}")
    with SparkDriver(tmp_path_factory.mktemp("spark"), settings) as running:
        yield running


@pytest.fixture
def ask(bootstrap: str) -> Ask:
    """Options of the source: Spark's names, `_` for the dot."""

    def options(**given: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": bootstrap} | {
            name.replace("_", "."): text for name, text in given.items()
        }

    return options


def fill(bootstrap: str, topic: str, partitions: int, count: int = PER_PARTITION) -> None:
    """Numbered records, one a second from `MOMENT_MS` on in each partition."""
    for partition in range(partitions):
        samples = [
            Sample(b"k%d" % number, b"%d-%d" % (partition, number), timestamp_ms=MOMENT_MS + 1000 * number)
            for number in range(count)
        ]
        Confluent().produce(bootstrap, topic, samples, partition=partition)


def expected(topic: str, partition: int, numbers: range) -> list[list[Any]]:
    """The rows that `fill` makes."""
    return [[f"k{n}", f"{partition}-{n}", topic, partition, n, MOMENT_MS + 1000 * n, 0] for n in numbers]


def all_of(topic: str, partitions: int, count: int = PER_PARTITION) -> list[list[Any]]:
    return [row for partition in range(partitions) for row in expected(topic, partition, range(count))]


def test_a_batch_read_has_every_column(
    driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 2)
    assert driver.call(own.read, ask(subscribe=topic)) == all_of(topic, 2)


def test_headers(driver: SparkDriver, ask: Ask, bootstrap: str, topic: str) -> None:
    headers = (("one", b"1"), ("two", b""), ("one", b"again"))
    samples = [
        Sample(b"k", b"with", headers, timestamp_ms=MOMENT_MS),
        Sample(None, None, timestamp_ms=MOMENT_MS),
    ]
    Confluent().produce(bootstrap, topic, samples)
    assert driver.call(own.read, ask(subscribe=topic, includeHeaders="true")) == [
        ["k", "with", topic, 0, 0, MOMENT_MS, 0, [["one", "1"], ["two", ""], ["one", "again"]]],
        [None, None, topic, 0, 1, MOMENT_MS, 0, None],
    ]


def test_a_pattern_finds_its_topics(
    driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic
) -> None:
    topics = [make_topic(1, suffix=suffix) for suffix in ("-a1", "-a2", "-b1")]
    for topic in topics:
        fill(bootstrap, topic, 1, 5)
    stem = topics[0].removesuffix("-a1")
    found = driver.call(own.read, ask(subscribePattern=f"{stem}-a.*"))
    assert found == all_of(topics[0], 1, 5) + all_of(topics[1], 1, 5)


def test_offsets_name_a_part(driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 2)
    options = ask(
        assign=json.dumps({topic: [0, 1]}),
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 20, "1": -1}}),
    )
    assert driver.call(own.read, options) == expected(topic, 0, range(10, 20)) + expected(
        topic, 1, range(PER_PARTITION)
    )


def test_timestamps_name_a_part(driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 2)
    options = ask(
        subscribe=topic,
        startingTimestamp=str(MOMENT_MS + 9_500),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": MOMENT_MS + 20_000, "1": MOMENT_MS + 900_000}}),
    )
    # A moment after the last record stands for the end.
    assert driver.call(own.read, options) == expected(topic, 0, range(10, 20)) + expected(
        topic, 1, range(10, PER_PARTITION)
    )


def test_more_tasks_than_partitions(driver: SparkDriver, ask: Ask, bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 1)
    options = ask(subscribe=topic, minPartitions="4")
    assert driver.call(own.tasks, options) == 4
    assert driver.call(own.read, options) == all_of(topic, 1)


def test_a_stream_reads_what_is_there_in_steps(
    driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 2)
    options = ask(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="30")
    batches = driver.call(own.read_stream, options, str(tmp_path))
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert sorted(itertools.chain(*batches), key=lambda row: row[2:5]) == all_of(topic, 2)
    # Another run of the same query goes on where that one ended.
    Confluent().produce(bootstrap, topic, [Sample(b"k", b"late", timestamp_ms=MOMENT_MS)], partition=1)
    again = driver.call(own.read_stream, options, str(tmp_path))
    assert again == [[["k", "late", topic, 1, PER_PARTITION, MOMENT_MS, 0]]]


def test_what_it_writes(driver: SparkDriver, bootstrap: str, make_topic: MakeTopic) -> None:
    one, two = make_topic(2, suffix="-one"), make_topic(1, suffix="-two")
    rows = [
        [one, 1, "k1", "to a partition", [["name", "text"]]],
        [one, 0, "k2", None, None],
        [two, None, None, "to another topic", []],
    ]
    driver.call(own.write, bootstrap, rows)
    [first] = Confluent().read(bootstrap, one, 1, partition=1)
    assert (first.key, first.value, first.headers) == (b"k1", b"to a partition", (("name", b"text"),))
    [second] = Confluent().read(bootstrap, one, 1, partition=0)
    assert (second.key, second.value) == (b"k2", None)
    [third] = Confluent().read(bootstrap, two, 1)
    assert (third.key, third.value) == (None, b"to another topic")


def test_a_stream_is_copied(
    driver: SparkDriver, ask: Ask, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, target = make_topic(2, suffix="-source"), make_topic(2, suffix="-target")
    fill(bootstrap, source, 2)
    driver.call(own.copy_stream, bootstrap, source, target, str(tmp_path))
    copied = driver.call(own.read, ask(subscribe=target))
    assert [row[:5] for row in copied] == [row[:5] for row in all_of(target, 2)]
