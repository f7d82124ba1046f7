"""Producer, consumers and admin client for Ottla and Apache Kafka, with asyncio. `ottla.client.blocking` is without it.

    from ottla.client import Producer

    async with Producer("localhost:9092") as producer:
        await producer.send_and_wait("greetings", b"hello")

Names are imported when first used, so that a program loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.cluster import Leader
    from ottla.client.consumer.commits import CommitCallback
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.interceptor import ConsumerInterceptor
    from ottla.client.consumer.listener import GroupMetadata, RebalanceListener
    from ottla.client.consumer.offset_lookup import OffsetAndTimestamp
    from ottla.client.consumer.share.consumer import AcknowledgeType, ShareConsumer
    from ottla.client.consumer.share.share_fetcher import AcknowledgementCallback
    from ottla.client.duration import Duration, Time
    from ottla.client.errors import (
        Aborted,
        BufferFull,
        ClientError,
        Closed,
        CommitFailed,
        Disconnected,
        Fenced,
        Malformed,
        MustAbort,
        NoBroker,
        NoOffset,
        RecordTooLarge,
        Refused,
        SerializationFailed,
        SomeFailed,
        TimedOut,
        TopicUnknown,
        Unsupported,
        WrongState,
    )
    from ottla.client.producer.accumulator import RecordHeaders
    from ottla.client.producer.delivery import Delivery, DeliveryCallback
    from ottla.client.producer.interceptor import Outgoing, ProducerInterceptor
    from ottla.client.producer.partitioner import Partitioner
    from ottla.client.producer.producer import Producer
    from ottla.client.producer.statistics import Statistics
    from ottla.client.record import OffsetAndMetadata, Record, RecordMetadata, TimestampType, TopicPartition
    from ottla.client.serializer import Deserializer, Serializer
    from ottla.metadata.settings.error import SettingError
    from ottla.wire.errors import ErrorCode

_PLACES = {
    "ottla.client.admin.admin": ("Admin",),
    "ottla.client.cluster": ("Leader",),
    "ottla.client.consumer.commits": ("CommitCallback",),
    "ottla.client.consumer.consumer": ("Consumer",),
    "ottla.client.consumer.offset_lookup": ("OffsetAndTimestamp",),
    "ottla.client.consumer.interceptor": ("ConsumerInterceptor",),
    "ottla.client.consumer.listener": (
        "GroupMetadata",
        "RebalanceListener",
    ),
    "ottla.client.consumer.share.consumer": (
        "AcknowledgeType",
        "ShareConsumer",
    ),
    "ottla.client.consumer.share.share_fetcher": ("AcknowledgementCallback",),
    "ottla.client.duration": (
        "Duration",
        "Time",
    ),
    "ottla.client.errors": (
        "Aborted",
        "BufferFull",
        "ClientError",
        "Closed",
        "CommitFailed",
        "Disconnected",
        "Fenced",
        "Malformed",
        "MustAbort",
        "NoBroker",
        "NoOffset",
        "RecordTooLarge",
        "Refused",
        "SerializationFailed",
        "SomeFailed",
        "TimedOut",
        "TopicUnknown",
        "Unsupported",
        "WrongState",
    ),
    "ottla.client.producer.accumulator": ("RecordHeaders",),
    "ottla.client.producer.delivery": (
        "Delivery",
        "DeliveryCallback",
    ),
    "ottla.client.producer.interceptor": (
        "Outgoing",
        "ProducerInterceptor",
    ),
    "ottla.client.producer.partitioner": ("Partitioner",),
    "ottla.client.producer.producer": ("Producer",),
    "ottla.client.producer.statistics": ("Statistics",),
    "ottla.client.record": (
        "OffsetAndMetadata",
        "Record",
        "RecordMetadata",
        "TimestampType",
        "TopicPartition",
    ),
    "ottla.client.serializer": (
        "Deserializer",
        "Serializer",
    ),
    "ottla.metadata.settings.error": ("SettingError",),
    "ottla.wire.errors": ("ErrorCode",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


__all__ = [
    "Aborted",
    "AcknowledgeType",
    "AcknowledgementCallback",
    "Admin",
    "BufferFull",
    "ClientError",
    "Closed",
    "CommitCallback",
    "CommitFailed",
    "Consumer",
    "ConsumerInterceptor",
    "Delivery",
    "DeliveryCallback",
    "Deserializer",
    "Disconnected",
    "Duration",
    "ErrorCode",
    "Fenced",
    "GroupMetadata",
    "Leader",
    "Malformed",
    "MustAbort",
    "NoBroker",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Outgoing",
    "Partitioner",
    "Producer",
    "ProducerInterceptor",
    "RebalanceListener",
    "Record",
    "RecordHeaders",
    "RecordMetadata",
    "RecordTooLarge",
    "Refused",
    "SerializationFailed",
    "Serializer",
    "SettingError",
    "ShareConsumer",
    "SomeFailed",
    "Statistics",
    "Time",
    "TimedOut",
    "TimestampType",
    "TopicPartition",
    "TopicUnknown",
    "Unsupported",
    "WrongState",
]
