"""A committed offset, and its record as Kafka writes it."""

from typing import NamedTuple

from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.wire.message import Message
from ottla.wire.records.offset import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.uuid import ZERO_UUID

KINDS: Kinds = {
    0: (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
}

_VERSION = 4
# The only version with room for an expiry of its own, which clients could set before version 5 of OffsetCommit.
_EXPIRING_VERSION = 1


class Place(NamedTuple):
    """What an offset is committed for."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """How far a group has come in a partition; `at` is the offset of the record that says so."""

    at: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    topic_id: bytes


def commit_record(
    place: Place,
    offset: int,
    leader_epoch: int,
    metadata: str | None,
    now: int,
    *,
    expire_timestamp: int | None = None,
    topic_id: bytes = ZERO_UUID,
) -> KeyedRecord:
    """Return the record of a commit."""
    value = OffsetCommitValue(offset=offset, metadata=metadata or "", commit_timestamp=now)
    if expire_timestamp is not None:
        # What this version has no room for must not be known to this process alone.
        value.expire_timestamp = expire_timestamp
        return KeyedRecord(_key(place), value, _EXPIRING_VERSION)
    value.leader_epoch = leader_epoch
    value.topic_id = topic_id
    return KeyedRecord(_key(place), value, _VERSION)


def tombstone(place: Place) -> KeyedRecord:
    """Return the record that an offset is gone."""
    return KeyedRecord(_key(place), None)


def place_of(key: Message) -> Place:
    """Return what a record's offset is for."""
    assert isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey)
    return Place(key.group, key.topic, key.partition)


def committed_of(at: int, value: Message) -> Committed:
    """Return the offset that the record at `at` tells of."""
    if isinstance(value, LegacyOffsetCommitValue):
        return Committed(at, value.offset, -1, value.metadata, value.commit_timestamp, None, ZERO_UUID)
    assert isinstance(value, OffsetCommitValue)
    return Committed(
        at,
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp == -1 else value.expire_timestamp,
        value.topic_id,
    )


def _key(place: Place) -> OffsetCommitKey:
    return OffsetCommitKey(group=place.group, topic=place.topic, partition=place.partition)
