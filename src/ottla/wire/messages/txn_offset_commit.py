"""The TxnOffsetCommit API, key 28."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class TxnOffsetCommitRequest(Message, api=28, versions="0-6", flexible="3+"):
    """Commit a group's offsets as part of a transaction. v6 names topics by id."""

    class TxnOffsetCommitRequestTopic(Struct):
        class TxnOffsetCommitRequestPartition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: Int32 = since(2, default=-1, ignorable=True)
            committed_metadata: NullableString

        name: String = since(0, until=5, ignorable=True)
        topic_id: Uuid = since(6, ignorable=True)
        partitions: list[TxnOffsetCommitRequestPartition]

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Int32 = since(3, default=-1)
    member_id: String = since(3)
    group_instance_id: NullableString = since(3, default=None)
    topics: list[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitResponse(Message, api=28, versions="0-6", flexible="3+"):
    """Whether each offset became part of the transaction."""

    class TxnOffsetCommitResponseTopic(Struct):
        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: Int32
            error_code: Int16

        name: String = since(0, until=5, ignorable=True)
        topic_id: Uuid = since(6, ignorable=True)
        partitions: list[TxnOffsetCommitResponsePartition]

    throttle_time_ms: Int32
    topics: list[TxnOffsetCommitResponseTopic]
