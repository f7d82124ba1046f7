"""Producers at work, what they were told, and whether the broker kept its word.

A writer numbers its records, so that order, loss and repetition can be read off the partition afterwards:

K1  Every acknowledged record is there, at the offset that was acknowledged.
K2  The first appearances of a writer's records in a partition are in the order in which they were written.
K3  An idempotent writer's records appear once.

Writers never give a record up: what is not acknowledged is sent until it is, so in the end K1 speaks of all records.
"""

import random
import threading
import time
from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.peers.deadline import eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
Place = tuple[str, int]

# Reconnect at once, keep what is written for as long as it takes, and say nothing on stderr.
PATIENT = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "message.timeout.ms": 600_000,
    "socket.timeout.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "linger.ms": 2,
}


class Writer:
    """One producer on a topic of its own."""

    def __init__(self, name: str, bootstrap: str, settings: dict[str, Any], chance: random.Random) -> None:
        self.topic = name
        self.idempotent = bool(settings.get("enable.idempotence"))
        self.written: dict[Place, list[int]] = defaultdict(list)
        self.acknowledged: dict[tuple[str, int, int], int] = {}  # topic, partition, offset -> number
        self.failures: list[str] = []
        self._chance = chance
        self._number = 0
        self._producer = Producer(
            PATIENT | settings | {"bootstrap.servers": bootstrap, "error_cb": self._complain}
        )

    def write(self, count: int) -> None:
        """Send some records, without waiting for an answer."""
        for _ in range(count):
            number = self._number
            partition = self._chance.randrange(PARTITIONS)
            value = b"%d %d " % (partition, number) + b"x" * self._chance.randrange(1500)
            key = b"key-%d" % (number % 17)
            while True:
                try:
                    self._producer.produce(
                        self.topic, value, key, partition, on_delivery=self._answered(number, partition)
                    )
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self.written[self.topic, partition].append(number)
            self._number += 1
        self._producer.poll(0)

    def finish(self, seconds_max: float) -> None:
        """Wait until everything written is acknowledged."""
        left = self._producer.flush(seconds_max)
        assert left == 0, f"{self.topic}: {left} records were not acknowledged within {seconds_max} s"

    def _answered(self, number: int, partition: int) -> Any:
        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self.failures.append(f"{self.topic}: record {number}: {error}")
            else:
                self.acknowledged[self.topic, partition, message.offset()] = number

        return delivered

    def _complain(self, error: KafkaError) -> None:
        if error.fatal() or error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            self.failures.append(f"{self.topic}: {error}")


class Load:
    """Writers of every kind, driven by one thread until told to stop."""

    def __init__(
        self, bootstrap: str, chance: random.Random, *, topic_settings: dict[str, str] | None = None
    ) -> None:
        self.bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._drive, name="load", daemon=True)
        self.writers = [
            Writer(
                f"once-{codec}", bootstrap, {"enable.idempotence": True, "compression.type": codec}, chance
            )
            for codec in CODECS
        ]
        # Without idempotence only one request at a time keeps the order over a repetition.
        alone = {"max.in.flight": 1, "enable.idempotence": False}
        self.writers += [
            Writer(
                f"plain-{acks}-{codec}", bootstrap, alone | {"acks": acks, "compression.type": codec}, chance
            )
            for acks, codec in (
                ("all", "none"),
                ("all", "zstd"),
                ("1", "lz4"),
                ("1", "snappy"),
                ("1", "gzip"),
            )
        ]
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        new = [NewTopic(each.topic, PARTITIONS, 1, config=topic_settings or {}) for each in self.writers]
        for future in admin.create_topics(new).values():
            future.result(20)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds_max: float = 60.0) -> None:
        """Write no more, and wait until all is acknowledged; the broker must be up."""
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the load does not come to an end"
        deadline = time.monotonic() + seconds_max
        for writer in self.writers:
            writer.finish(max(1.0, deadline - time.monotonic()))

    @property
    def acknowledged_count(self) -> int:
        return sum(len(writer.acknowledged) for writer in self.writers)

    def wait_for(self, count: int, seconds_max: float = 30.0) -> None:
        """Return once so many records more than now are acknowledged."""
        goal = self.acknowledged_count + count
        eventually(lambda: self.acknowledged_count >= goal, seconds_max)

    def _drive(self) -> None:
        while not self._stop.is_set():
            for writer in self.writers:
                # Not too far ahead of a broker that is down: what is queued must be sent before the end.
                if sum(map(len, writer.written.values())) - len(writer.acknowledged) < 400:
                    writer.write(8)
                else:
                    writer.write(0)
            self._stop.wait(0.01)

    def check(self) -> int:
        """Read everything back, compare, and return how many records were acknowledged."""
        for writer in self.writers:
            assert not writer.failures, writer.failures[:5]
        places = sorted(place for writer in self.writers for place in writer.written)
        found = read_all(self.bootstrap, places)
        for writer in self.writers:
            for place in writer.written:
                check_partition(writer, place, found[place])
        return self.acknowledged_count


def check_partition(writer: Writer, place: Place, records: list[tuple[int, int]]) -> None:
    """Hold what a partition has, as (offset, number), against what its writer was told."""
    where = f"{place[0]}-{place[1]}"
    at_offset = dict(records)
    for (topic, partition, offset), number in writer.acknowledged.items():
        if (topic, partition) == place and offset >= 0:
            assert at_offset.get(offset) == number, (
                f"{where}: record {number} was acknowledged at offset {offset}, where {at_offset.get(offset)} is"
            )
    numbers = [number for _, number in records]
    assert list(dict.fromkeys(numbers)) == writer.written[place], f"{where}: records are lost or out of order"
    if writer.idempotent:
        assert len(numbers) == len(set(numbers)), f"{where}: an idempotent producer's records are there twice"
    offsets = [offset for offset, _ in records]
    assert offsets == list(range(len(offsets))), f"{where}: offsets are not dense"


def read_all(
    bootstrap: str, places: list[Place], seconds_max: float = 60.0
) -> dict[Place, list[tuple[int, int]]]:
    """Offset and number of every record of some partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
            "enable.partition.eof": True,
            "log_level": 0,
            "fetch.wait.max.ms": 20,
        }
    )
    found: dict[Place, list[tuple[int, int]]] = {place: [] for place in places}
    open_places = set(places)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])
        deadline = time.monotonic() + seconds_max
        while open_places:
            assert time.monotonic() < deadline, f"{open_places} cannot be read to the end"
            for message in consumer.consume(2000, timeout=0.2):
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None and partition is not None and offset is not None
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    open_places.discard((topic, partition))
                    continue
                written_to, number, _ = (message.value() or b"").split(b" ", 2)
                assert int(written_to) == partition
                found[topic, partition].append((offset, int(number)))
        return found
    finally:
        consumer.close()
