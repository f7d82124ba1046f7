"""What a task of Spark's is told to read; it travels from the planner to the task."""

from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.record import TopicPartition
from ottla.spark.source.ranges import OffsetRange


class Portion(NamedTuple):
    """What one fetch brought, and the offset behind it."""

    chunk: FetchedBatches
    end_offset: int


class Task(InputPartition):
    """A range of one partition, and the id its topic had when this was planned, empty where brokers have none.

    `portions` is all that is in the range, where the planner has fetched it; then nothing is left to be fetched.
    """

    def __init__(self, topic: str, partition: int, start: int, end: int, topic_id: str = "") -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end
        self.topic_id = topic_id
        self.portions: tuple[Portion, ...] = ()

    @classmethod
    def of(cls, planned: OffsetRange, topic_id: str) -> "Task":
        """Make a task of a range."""
        return cls(*planned.partition, planned.start, planned.end, topic_id)

    @property
    def size(self) -> int:
        """How many offsets there are in it."""
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)
