"""What goes into a producer and comes out of a consumer."""

import enum
from typing import Any, NamedTuple

from ottla.wire.record import Headers


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TimestampType(enum.IntEnum):
    """Whose time a record bears."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Record(NamedTuple):
    """One record as a consumer hands it out. Key and value are what the deserializers made of the bytes."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers = ()
    timestamp_type: int = TimestampType.CREATE_TIME
    leader_epoch: int = -1
    delivery_count: int = 0  # how often a share group has handed it out, this time included

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it lies."""
        return TopicPartition(self.topic, self.partition)


class RecordMetadata(NamedTuple):
    """Where a record has gone. The offset is -1 when nobody was asked (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
