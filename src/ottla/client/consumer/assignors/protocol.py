"""Encodes and decodes subscriptions and assignments in Kafka's consumer protocol.

V1  Written in the newest version known; read in the version it names, or the newest known if that is newer: versions
    only ever add fields at the end.
"""

import struct
from collections.abc import Iterable
from typing import TypeVar, cast

from ottla.client.consumer.assignors.assignor import MemberSubscription
from ottla.client.errors import Malformed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

M = TypeVar("M", ConsumerProtocolAssignment, ConsumerProtocolSubscription)

PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")
_NEWEST = ConsumerProtocolSubscription.versions[-1]


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """Encode the subscription of a member."""
    kind = ConsumerProtocolSubscription
    message = kind(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            kind.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(sorted(subscription.owned)).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(_NEWEST) + message.encode(_NEWEST)


def decode_subscription(data: bytes, instance: str | None = None) -> MemberSubscription:
    """Decode the subscription of a member."""
    message = _decode(ConsumerProtocolSubscription, data)
    return MemberSubscription(
        tuple(message.topics),
        message.user_data,
        tuple(
            TopicPartition(each.topic, number)
            for each in message.owned_partitions
            for number in each.partitions
        ),
        max(message.generation_id, -1),
        message.rack_id or None,
        instance,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode the assignment of a member."""
    kind = ConsumerProtocolAssignment
    message = kind(
        assigned_partitions=[
            kind.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions).items()
        ]
    )
    return _VERSION.pack(_NEWEST) + message.encode(_NEWEST)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Decode the assignment of a member."""
    message = _decode(ConsumerProtocolAssignment, data)
    return [
        TopicPartition(each.topic, number)
        for each in message.assigned_partitions
        for number in each.partitions
    ]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def _decode(kind: type[M], data: bytes) -> M:
    try:
        version: int = _VERSION.unpack_from(data)[0]
        if version < 0:
            raise ProtocolError(f"version {version}")
        message, _ = kind.decoder(min(version, _NEWEST))(data, _VERSION.size, len(data))
    except (struct.error, ProtocolError) as error:
        raise Malformed(
            f"a member of the group sent a {kind.__name__} that cannot be read: {error}"
        ) from None
    return cast(M, message)
