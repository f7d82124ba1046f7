"""Producer, consumer and admin for Ottla and Apache Kafka, in asyncio; `ottla.client.blocking` is the same without.

    from ottla.client import Producer

    async with Producer("localhost:9092") as producer:
        await producer.deliver("greetings", b"hello")

Names are imported when first used, so that a program pays only for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.listener import GroupMetadata, RebalanceListener
    from ottla.client.consumer.share.consumer import AcknowledgeType, ShareConsumer
    from ottla.client.errors import ClientError
    from ottla.client.producer.delivery import Delivery
    from ottla.client.producer.producer import Producer
    from ottla.client.record import OffsetAndMetadata, Record, RecordMetadata, TimestampType, TopicPartition

_PLACES = {
    "AcknowledgeType": "consumer.share.consumer",
    "Admin": "admin.admin",
    "ClientError": "errors",
    "Consumer": "consumer.consumer",
    "Delivery": "producer.delivery",
    "GroupMetadata": "consumer.listener",
    "OffsetAndMetadata": "record",
    "Producer": "producer.producer",
    "RebalanceListener": "consumer.listener",
    "Record": "record",
    "RecordMetadata": "record",
    "ShareConsumer": "consumer.share.consumer",
    "TimestampType": "record",
    "TopicPartition": "record",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)


__all__ = [
    "AcknowledgeType",
    "Admin",
    "ClientError",
    "Consumer",
    "Delivery",
    "GroupMetadata",
    "OffsetAndMetadata",
    "Producer",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "ShareConsumer",
    "TimestampType",
    "TopicPartition",
]
