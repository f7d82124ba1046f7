"""The OffsetCommit API, key 8."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class OffsetCommitRequest(Message, api=8, versions="2-10", flexible="8+"):
    """Store how far a group has read. v10 names topics by id."""

    class OffsetCommitRequestTopic(Struct):
        class OffsetCommitRequestPartition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: Int32 = since(6, default=-1, ignorable=True)
            committed_metadata: NullableString

        name: String = since(2, until=9, ignorable=True)
        topic_id: Uuid = since(10, ignorable=True)
        partitions: list[OffsetCommitRequestPartition]

    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: NullableString = since(7, default=None)
    retention_time_ms: Int64 = since(2, until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic]


class OffsetCommitResponse(Message, api=8, versions="2-10", flexible="8+"):
    """Whether each committed offset was stored."""

    class OffsetCommitResponseTopic(Struct):
        class OffsetCommitResponsePartition(Struct):
            partition_index: Int32
            error_code: Int16

        name: String = since(2, until=9, ignorable=True)
        topic_id: Uuid = since(10, ignorable=True)
        partitions: list[OffsetCommitResponsePartition]

    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetCommitResponseTopic]
