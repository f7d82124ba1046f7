"""The OffsetForLeaderEpoch API, key 23."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, String


class OffsetForLeaderEpochRequest(Message, api=23, versions="2-4", flexible="4+"):
    """Ask where a leader epoch ended, to find how far two logs agree."""

    class OffsetForLeaderTopic(Struct):
        class OffsetForLeaderPartition(Struct):
            partition: Int32
            current_leader_epoch: Int32 = -1
            leader_epoch: Int32

        topic: String
        partitions: list[OffsetForLeaderPartition]

    replica_id: Int32 = since(3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic]


class OffsetForLeaderEpochResponse(Message, api=23, versions="2-4", flexible="4+"):
    """The end offset of each epoch asked for."""

    class OffsetForLeaderTopicResult(Struct):
        class EpochEndOffset(Struct):
            error_code: Int16
            partition: Int32
            leader_epoch: Int32 = -1
            end_offset: Int64 = -1

        topic: String
        partitions: list[EpochEndOffset]

    throttle_time_ms: Int32
    topics: list[OffsetForLeaderTopicResult]
