"""The ListOffsets API, key 2."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, String


class ListOffsetsRequest(Message, api=2, versions="1-11", flexible="6+"):
    """Ask which offset lies at a time, or at either end of a partition."""

    class ListOffsetsTopic(Struct):
        class ListOffsetsPartition(Struct):
            partition_index: Int32
            current_leader_epoch: Int32 = since(4, default=-1, ignorable=True)
            timestamp: Int64

        name: String
        partitions: list[ListOffsetsPartition]

    replica_id: Int32
    isolation_level: Int8 = since(2)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = since(10, ignorable=True)


class ListOffsetsResponse(Message, api=2, versions="1-11", flexible="6+"):
    """The offset, timestamp and leader epoch found for each partition."""

    class ListOffsetsTopicResponse(Struct):
        class ListOffsetsPartitionResponse(Struct):
            partition_index: Int32
            error_code: Int16
            timestamp: Int64 = -1
            offset: Int64 = -1
            leader_epoch: Int32 = since(4, default=-1)

        name: String
        partitions: list[ListOffsetsPartitionResponse]

    throttle_time_ms: Int32 = since(2, ignorable=True)
    topics: list[ListOffsetsTopicResponse]
