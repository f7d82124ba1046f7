"""What goes into a producer and comes out of a consumer."""

import datetime as dt
import enum
from typing import Any, NamedTuple

from ottla.client.duration import datetime_of
from ottla.wire.record import Headers


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TimestampType(enum.IntEnum):
    """Who set the timestamp of a record: its producer, or the broker that stored it."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Record(NamedTuple):
    """A record as a consumer returns it. Key and value are what the deserializers returned, or bytes without them.

    The timestamp is in milliseconds since 1970. `delivery_count` says how often a share group has delivered the record,
    this time included; it is 0 for other consumers.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers = ()
    timestamp_type: int = TimestampType.CREATE_TIME
    leader_epoch: int = -1
    delivery_count: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and partition of the record."""
        return TopicPartition(self.topic, self.partition)

    @property
    def datetime(self) -> dt.datetime:
        """The timestamp as a datetime in UTC."""
        return datetime_of(self.timestamp)


class RecordMetadata(NamedTuple):
    """Where a record was stored. The offset is -1 when no broker was asked to confirm it (acks=0).

    The timestamp is in milliseconds since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def datetime(self) -> dt.datetime:
        """The timestamp as a datetime in UTC."""
        return datetime_of(self.timestamp)


class OffsetAndMetadata(NamedTuple):
    """A committed offset. It is the offset of the next record to read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
