"""Committed offsets in `__consumer_offsets`."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Int32, Int64, String, Uuid


class OffsetCommitKey(Message, api=1, versions="0"):
    """Key of a committed offset: group, topic, partition."""

    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Message, api=1, versions="0-4", flexible="4+"):
    """A committed offset."""

    offset: Int64
    leader_epoch: Int32 = since(3, default=-1, ignorable=True)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = since(1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = since(4, tag=0, ignorable=True)


class LegacyOffsetCommitKey(Message, api=0, versions="0"):
    """Key of a committed offset in the oldest format."""

    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(Message, api=0, versions="0"):
    """A committed offset in the oldest format."""

    offset: Int64
    metadata: String
    commit_timestamp: Int64
