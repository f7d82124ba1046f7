"""What tests of the source stand on: a cluster to read from, filled by a client that has nothing to do with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.peers.deadline import eventually

SECONDS_MAX = 20
# A cleaner and a retention that do not let a test wait, and few coordinators.
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


class Place:
    """A cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.quiet: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.admin = AdminClient(self.quiet)

    def make(self, topic: str, partitions: int = 1, **settings: str) -> str:
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(SECONDS_MAX)
        return topic

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS_MAX)
        eventually(lambda: topic not in self.admin.list_topics(timeout=SECONDS_MAX).topics)

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(SECONDS_MAX)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Have the broker delete the records before an offset, as retention does."""
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(SECONDS_MAX)

    def producer(self, **settings: Any) -> Producer:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer(self.quiet | {"linger.ms": 5} | named)

    def write(self, topic: str, *values: Any, partition: int = 0, **settings: Any) -> None:
        producer = self.producer(**settings)
        for value in values:
            producer.produce(topic, value if isinstance(value, bytes) else str(value), partition=partition)
        assert producer.flush(SECONDS_MAX) == 0

    def options(self, topic: str, **more: Any) -> dict[str, str]:
        chosen = {} if {"assign", "subscribePattern"} & more.keys() else {"subscribe": topic}
        named = {name.replace("__", "."): str(value) for name, value in more.items()}
        return (
            {"kafka.bootstrap.servers": self.bootstrap, "fetchOffset.retryIntervalMs": "50"} | chosen | named
        )

    def committed(self, group: str, topic: str) -> dict[int, int]:
        from ottla.client.blocking import Admin

        with Admin(self.bootstrap) as admin:
            found = admin.offsets.committed(group)
        return {key.partition: each.offset for key, each in found.items() if key.topic == topic}


Values = Callable[..., list[Any]]


class Stream:
    """A query that hands each batch to the test, and can be run again from where it was."""

    def __init__(self, spark: Any, place: Place, topic: str, checkpoint: Path) -> None:
        self._spark = spark
        self._place = place
        self._topic = topic
        self._checkpoint = str(checkpoint)
        self.batches: list[list[str]] = []

    @property
    def values(self) -> list[str]:
        return [value for batch in self.batches for value in batch]

    def start(self, trigger: dict[str, Any] | None = None, **options: Any) -> Any:
        def take(frame: Any, number: int) -> None:
            rows = frame.selectExpr("partition", "offset", "cast(value as string) value").collect()
            self.batches.append(
                [row.value for row in sorted(rows, key=lambda row: (row.partition, row.offset))]
            )

        source = self._spark.readStream.format("ottla").options(**self._place.options(self._topic, **options))
        writer = source.load().writeStream.foreachBatch(take)
        return (
            writer.option("checkpointLocation", self._checkpoint)
            .trigger(**(trigger or {"processingTime": "0 seconds"}))
            .start()
        )

    def run(self, **options: Any) -> Any:
        """Read what is there now."""
        query = self.start({"availableNow": True}, **options)
        query.awaitTermination()
        return query

    def wait_for(self, *expected: str, seconds_max: float = 60.0) -> None:
        eventually(lambda: sorted(self.values) == sorted(expected), seconds_max=seconds_max)
