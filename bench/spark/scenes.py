"""The scenarios: each measures one format on one server and returns its figures by name."""

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.spark import tasks
from bench.spark.delay import Delays
from bench.spark.figures import FORMATS
from tests.peers import process
from tests.peers.driver import SparkDriver
from tests.peers.server import Server

PARTITIONS = 4
VALUE_BYTES = 100
# Spark ends processes of Python that were idle for a minute, and other scenarios take longer than that.
WARMING_ROWS = 1_000
_serial = itertools.count(1)


@dataclass(frozen=True)
class Sizes:
    """How much of everything. The quick ones only show that a scenario works."""

    read_records: int = 2_000_000
    batch_rows: int = 250_000
    write_records: int = 1_000_000
    delay_warm_seconds: float = 4.0
    delay_seconds: float = 15.0
    delay_per_second: int = 100


QUICK = Sizes(20_000, 5_000, 10_000, 2.0, 3.0, 50)


@dataclass(frozen=True)
class Scene:
    """One driver, one server, and the topic that all readers read."""

    driver: SparkDriver
    server: Server
    sizes: Sizes
    topic: str = "records"

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    def fill(self) -> None:
        """Write what is to be read: no keys, values of digits and one letter, in batches of a usual size."""
        self.make(self.topic)
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20, "log_level": 0})
        for number in range(self.sizes.read_records):
            value = (b"%d " % number).ljust(VALUE_BYTES, b"v")
            while True:
                try:
                    producer.produce(self.topic, value, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(120) == 0

    def compare(self) -> None:
        """Both formats must find the same rows, all of them."""
        found = {each: self.driver.call(tasks.content, each, self.bootstrap, self.topic) for each in FORMATS}
        assert found["kafka"] == found["ottla"], f"the two do not read the same: {found}"
        assert found["ottla"][0] == self.sizes.read_records, found

    def make(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        deadline = time.monotonic() + 30
        while len(admin.list_topics(timeout=10).topics.get(topic, _NOTHING).partitions) < PARTITIONS:
            assert time.monotonic() < deadline, f"{topic} was not made"

    def fresh(self) -> str:
        """A new topic."""
        topic = f"target-{next(_serial)}"
        self.make(topic)
        return topic

    def drop(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(30)

    def timed(self, records: int, function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
        """What a task returned, and the CPU time of Spark and the server for each record in microseconds."""
        before = self._cpu_seconds()
        result = self.driver.call(function, *arguments, seconds_max=1200)
        return result, (self._cpu_seconds() - before) / records * 1e6

    def _cpu_seconds(self) -> float:
        return process.cpu_seconds(self.driver.pid) + self.server.cpu_seconds()


class _Nothing:
    partitions: tuple[()] = ()


_NOTHING = _Nothing()


def read(scene: Scene, format: str) -> dict[str, float]:
    count = scene.sizes.read_records
    seconds, cpu = scene.timed(count, tasks.read, format, scene.bootstrap, scene.topic)
    return {"read.per_s": count / seconds, "read.cpu_us": cpu}


def stream(scene: Scene, format: str) -> dict[str, float]:
    count = scene.sizes.read_records
    given = (format, scene.bootstrap, scene.topic, scene.sizes.batch_rows)
    (seconds, rows), cpu = scene.timed(count, tasks.stream, *given)
    assert rows == count, f"{format} read {rows} of {count} rows"
    return {"stream.per_s": count / seconds, "stream.cpu_us": cpu}


def write(scene: Scene, format: str) -> dict[str, float]:
    return _write(scene, format, "write", keyed=False)


def keyed(scene: Scene, format: str) -> dict[str, float]:
    return _write(scene, format, "keyed", keyed=True)


def _write(scene: Scene, format: str, name: str, *, keyed: bool) -> dict[str, float]:
    first, count, topic = scene.fresh(), scene.sizes.write_records, scene.fresh()
    scene.driver.call(tasks.write, format, scene.bootstrap, first, WARMING_ROWS, VALUE_BYTES, keyed)
    scene.drop(first)
    given = (format, scene.bootstrap, topic, count, VALUE_BYTES, keyed)
    seconds, cpu = scene.timed(count, tasks.write, *given)
    found = scene.driver.call(tasks.committed, scene.bootstrap, topic)
    assert found == [count, count], f"{format} wrote {found} of {count} rows"
    scene.drop(topic)
    return {f"{name}.per_s": count / seconds, f"{name}.cpu_us": cpu}


def copy(scene: Scene, format: str) -> dict[str, float]:
    count, topic = scene.sizes.read_records, scene.fresh()
    given = (format, scene.bootstrap, scene.topic, topic, scene.sizes.batch_rows)
    seconds, cpu = scene.timed(count, tasks.copy, *given)
    found = scene.driver.call(tasks.committed, scene.bootstrap, topic)
    assert found == [count, count], f"{format} copied {found} of {count} rows"
    scene.drop(topic)
    return {"copy.per_s": count / seconds, "copy.cpu_us": cpu}


def delay(scene: Scene, format: str) -> dict[str, float]:
    source, target, sizes = scene.fresh(), scene.fresh(), scene.sizes
    scene.driver.call(tasks.start_copy, format, scene.bootstrap, source, target)
    try:
        between = Delays(scene.bootstrap, source, target, PARTITIONS, sizes.delay_per_second)
        found = between.measure(sizes.delay_warm_seconds, sizes.delay_seconds)
    finally:
        batch_ms = scene.driver.call(tasks.stop_copy, format)
    scene.drop(source)
    scene.drop(target)
    return {
        "delay.p50_ms": statistics.median(found),
        "delay.p99_ms": found[int(len(found) * 0.99)],
        "delay.batch_ms": batch_ms,
    }


SCENES: dict[str, Callable[[Scene, str], dict[str, float]]] = {
    "read": read,
    "stream": stream,
    "write": write,
    "keyed": keyed,
    "copy": copy,
    "delay": delay,
}
# Those that need the topic of records.
READERS = frozenset({"read", "stream", "copy"})
