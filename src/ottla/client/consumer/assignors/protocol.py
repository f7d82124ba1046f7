"""What members of a classic group say to each other, in the bytes of Kafka's consumer protocol.

V1  Written in the newest version known; read in the version it names, or the newest known if that is newer: versions
    only ever add fields at the end.
"""

import struct
from collections.abc import Iterable
from typing import TypeVar, cast

from ottla.client.consumer.assignors.spec import Wish
from ottla.client.errors import Malformed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

M = TypeVar("M", ConsumerProtocolAssignment, ConsumerProtocolSubscription)

PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")
_NEWEST = ConsumerProtocolSubscription.versions[-1]


def encode_wish(wish: Wish) -> bytes:
    """Return what a member hands in when it joins."""
    kind = ConsumerProtocolSubscription
    message = kind(
        topics=sorted(wish.topics),
        user_data=wish.user_data,
        owned_partitions=[
            kind.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(sorted(wish.owned)).items()
        ],
        generation_id=wish.generation,
        rack_id=wish.rack,
    )
    return _VERSION.pack(_NEWEST) + message.encode(_NEWEST)


def decode_wish(data: bytes, instance: str | None = None) -> Wish:
    """Read what another member handed in."""
    message = _decode(ConsumerProtocolSubscription, data)
    return Wish(
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
    """Return what the leader hands in for a member."""
    kind = ConsumerProtocolAssignment
    message = kind(
        assigned_partitions=[
            kind.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions).items()
        ]
    )
    return _VERSION.pack(_NEWEST) + message.encode(_NEWEST)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Read what the leader handed in for this member."""
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
