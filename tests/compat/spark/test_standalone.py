"""The same programs on a Spark cluster: a master, two workers, and executors in processes of their own."""

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.compat.absence import skip_aloud
from tests.compat.chosen import MakeTopic
from tests.compat.clients import Confluent, Sample
from tests.compat.spark import programs
from tests.peers.driver import SHORT_LIVED, SparkDriver

if find_spec("pyspark") is None:
    pytest.skip("PySpark is not installed", allow_module_level=True)

from ottla.spark import SparkFailure
from ottla.spark.java import find_java
from tests.compat.spark.standalone import Standalone

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

# Executors that live for a minute, as the driver.
SETTINGS = SHORT_LIVED | {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    try:
        find_java()
    except SparkFailure as failure:
        skip_aloud(failure.message)
    with Standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def driver(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    place = tmp_path_factory.mktemp("driver")
    with SparkDriver(place, SETTINGS, master=cluster.master, ottla=True) as running:
        yield running


def test_tasks_run_in_executors(cluster: Standalone, driver: SparkDriver) -> None:
    lines = driver.call(programs.lines_of_descent)
    executors = cluster.executors()
    assert len(executors) == 2
    for line in lines:
        assert set(line) & set(executors), f"a task ran outside of {executors}: {line}"
        assert driver.pid not in line and driver.java_pid() not in line
    assert set(executors) <= {pid for line in lines for pid in line}, "one executor had nothing to do"


def test_a_batch_there_and_back(driver: SparkDriver, bootstrap: str, make_topic: MakeTopic) -> None:
    """Enough rows that they do not travel as a small thing."""
    topic = make_topic(3)
    assert driver.call(programs.write_and_read, bootstrap, topic, 30_000) == [30_000, 30_000, 3]


def test_streams(driver: SparkDriver, bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, copy, counts = (make_topic(2, suffix=name) for name in ("-source", "-copy", "-counts"))
    samples = [
        [Sample(b"key-%d" % (number % 7), b"%d %d" % (partition, number)) for number in range(500)]
        for partition in range(2)
    ]
    for partition in range(2):
        Confluent().produce(bootstrap, source, samples[partition], partition=partition)
    driver.call(programs.copy_and_count, bootstrap, source, copy, counts, str(tmp_path))
    for partition in range(2):
        found = Confluent().read(bootstrap, copy, 500, partition=partition, isolation="read_committed")
        assert [(each.key, each.value) for each in found] == [
            (each.key, each.value) for each in samples[partition]
        ]
    rows = driver.call(programs.committed_values, bootstrap, counts)
    last = {key: max(int(value) for k, value in rows if k == key) for key in {key for key, _ in rows}}
    assert last == Counter(f"key-{number % 7}" for number in range(500) for _ in range(2))


def test_an_app(driver: SparkDriver, bootstrap: str, topic: str, tmp_path: Path) -> None:
    lines = [b"to be or not to be", b"to do"]
    Confluent().produce(bootstrap, topic, [Sample(None, line) for line in lines])
    found = driver.call(programs.count_words, bootstrap, topic, str(tmp_path))
    assert found == Counter(b" ".join(lines).decode().split())
