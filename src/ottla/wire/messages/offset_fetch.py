"""The OffsetFetch API, key 9."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, NullableString, String, Uuid


class OffsetFetchRequest(Message, api=9, versions="1-10", flexible="6+"):
    """Ask how far groups have read; v8 asks for several groups at once."""

    class OffsetFetchRequestTopic(Struct):
        name: String
        partition_indexes: list[Int32]

    class OffsetFetchRequestGroup(Struct):
        class OffsetFetchRequestTopics(Struct):
            name: String = since(8, until=9, ignorable=True)
            topic_id: Uuid = since(10, ignorable=True)
            partition_indexes: list[Int32]

        group_id: String
        member_id: NullableString = since(9, default=None, ignorable=True)
        member_epoch: Int32 = since(9, default=-1, ignorable=True)
        topics: list[OffsetFetchRequestTopics] | None

    group_id: String = since(1, until=7)
    topics: list[OffsetFetchRequestTopic] | None = since(1, until=7, nullable="2+")
    groups: list[OffsetFetchRequestGroup] = since(8)
    require_stable: Bool = since(7)


class OffsetFetchResponse(Message, api=9, versions="1-10", flexible="6+"):
    """The committed offset of each partition, a group at a time since v8."""

    class OffsetFetchResponseTopic(Struct):
        class OffsetFetchResponsePartition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: Int32 = since(5, default=-1, ignorable=True)
            metadata: NullableString
            error_code: Int16

        name: String
        partitions: list[OffsetFetchResponsePartition]

    class OffsetFetchResponseGroup(Struct):
        class OffsetFetchResponseTopics(Struct):
            class OffsetFetchResponsePartitions(Struct):
                partition_index: Int32
                committed_offset: Int64
                committed_leader_epoch: Int32 = -1
                metadata: NullableString
                error_code: Int16

            name: String = since(8, until=9, ignorable=True)
            topic_id: Uuid = since(10, ignorable=True)
            partitions: list[OffsetFetchResponsePartitions]

        group_id: String
        topics: list[OffsetFetchResponseTopics]
        error_code: Int16

    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = since(1, until=7)
    error_code: Int16 = since(2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = since(8)
