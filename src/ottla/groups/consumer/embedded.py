"""What classic consumers say to each other inside JoinGroup and SyncGroup, read and written by the coordinator.

Two bytes of version come first. A version newer than ours is read as our newest: later ones only add to the end.
"""

import struct
from typing import TypeVar

from ottla.groups.assignors.spec import Assignment
from ottla.groups.topics import TopicsView
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_VERSION = struct.Struct(">h")
_TopicPartition = ConsumerProtocolAssignment.TopicPartition
M = TypeVar("M", bound=Message)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Return what a classic consumer wants; ProtocolError when it makes no sense."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return what a classic consumer was given; ProtocolError when it makes no sense."""
    return _read(ConsumerProtocolAssignment, data)


def write_assignment(assignment: Assignment, topics: TopicsView, subscription: bytes) -> bytes:
    """Return an assignment for a consumer, at the version it wrote its subscription in; gone topics are left out."""
    version = _version(subscription)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            _TopicPartition(topic=facts.name, partitions=sorted(assignment[topic_id]))
            for topic_id in sorted(assignment)
            if (facts := topics.by_id(topic_id)) is not None
        ]
    )
    return _VERSION.pack(version) + message.encode(version)


def _read(kind: type[M], data: bytes) -> M:
    message: M = kind.decoder(_version(data))(data, _VERSION.size, len(data))[0]
    return message


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("what a consumer says begins with a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"no consumer speaks version {version}")
    return min(version, ConsumerProtocolSubscription.versions[-1])
