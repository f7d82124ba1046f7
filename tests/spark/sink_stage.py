"""Spark's part in a write, played without Spark: it plans, runs tasks, and commits or aborts in an object made anew.

What it does with a writer is what Spark does: the one that plans is pickled, each task has a copy, and the one that
commits knows nothing but the options. Topics are read by a client that has nothing to do with what is tested.
"""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StringType, StructField, StructType

from ottla.client.blocking import Admin
from ottla.spark.sink.batch import BatchWriter
from ottla.spark.sink.stream import StreamWriter
from tests.peers.deadline import eventually

SCHEMA = StructType([StructField("value", StringType())])
_attempts = count(1)


class Killed(BaseException):
    """The process ended here; nothing that would tidy up is called."""


@contextmanager
def task(part: int, query_id: str | None, batch_id: int | None) -> Iterator[None]:
    """Be the task of a partition."""
    properties = {"sql.streaming.queryId": query_id, "streaming.sql.batchId": batch_id}
    TaskContext._setTaskContext(None)
    TaskContext(
        partitionId=part,
        attemptNumber=0,
        taskAttemptId=next(_attempts),
        localProperties={name: str(value) for name, value in properties.items() if value is not None},
    )
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)


def rows(values: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a task as they arrive."""
    if values:
        yield pa.RecordBatch.from_pydict({"value": list(values)})


class Query:
    """A streaming query with one sink."""

    def __init__(self, bootstrap: str, topic: str, query_id: str = "", **options: str) -> None:
        self.bootstrap = bootstrap
        self.query_id = query_id or f"query-of-{topic}"
        self.options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **options}

    def writer(self) -> StreamWriter:
        return StreamWriter(self.options, SCHEMA, False)

    def attempt(
        self, part: int, values: Sequence[str], batch_id: int, planned: StreamWriter
    ) -> WriterCommitMessage:
        """One attempt of one task."""
        with task(part, self.query_id, batch_id):
            message = pickle.loads(pickle.dumps(planned)).write(rows(values))
        return pickle.loads(pickle.dumps(message))

    def run(self, batch_id: int, *parts: Sequence[str]) -> list[WriterCommitMessage | None]:
        """Run the tasks of a batch, and return their messages."""
        planned = self.writer()
        return [self.attempt(number, values, batch_id, planned) for number, values in enumerate(parts)]

    def commit(self, batch_id: int, messages: list[WriterCommitMessage | None]) -> None:
        self.writer().commit(messages, batch_id)

    def batch(self, batch_id: int, *parts: Sequence[str]) -> None:
        """A batch from beginning to end."""
        self.commit(batch_id, self.run(batch_id, *parts))


class Job:
    """A write that is no stream."""

    def __init__(self, bootstrap: str, topic: str, **options: str) -> None:
        self.options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **options}

    def run(self, *parts: Sequence[str]) -> tuple[BatchWriter, list[WriterCommitMessage | None]]:
        planned = BatchWriter(self.options, SCHEMA, False)
        messages: list[WriterCommitMessage | None] = []
        for number, values in enumerate(parts):
            with task(number, None, None):
                messages.append(pickle.loads(pickle.dumps(planned)).write(rows(values)))
        return pickle.loads(pickle.dumps(planned)), messages


class Topics:
    """The topics and groups of one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self._quiet: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._quiet)

    def make(self, topic: str, partitions: int = 1, **settings: str) -> str:
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self._admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(20)

        def led() -> bool:
            found = self._admin.list_topics(topic, timeout=20).topics[topic]
            return not found.error and all(each.leader >= 0 for each in found.partitions.values())

        eventually(led)
        return topic

    def read(self, topic: str, *, committed: bool = True) -> list[str]:
        """All values, partition by partition, up to the end as it is now for such a reader."""
        return [message.value().decode() for message in self.messages(topic, committed=committed)]

    def messages(self, topic: str, *, committed: bool = True) -> list[Message]:
        """The same with all that belongs to a record."""
        self.settle()
        isolation = "read_committed" if committed else "read_uncommitted"
        more = {"group.id": "reader", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer(self._quiet | more | {"fetch.wait.max.ms": 20})
        partitions = self._admin.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[Message] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(20)
            assert message is not None, f"{topic} has no end"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
        consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def settle(self) -> None:
        """Wait until what was decided of transactions has reached their partitions."""
        with Admin(self._quiet["bootstrap.servers"]) as admin:
            eventually(lambda: not admin.transactions.list(states=["PrepareCommit", "PrepareAbort"]))

    def marks(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """What a group has committed: offsets, and the texts beside them."""
        with Admin(self._quiet["bootstrap.servers"]) as admin:
            found = admin.offsets.committed(group, require_stable=True)
        return {tuple(place): (each.offset, each.metadata) for place, each in found.items()}
