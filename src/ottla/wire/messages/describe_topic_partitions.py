"""The DescribeTopicPartitions API, key 75."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, Uuid


class DescribeTopicPartitionsRequest(Message, api=75, versions="0", flexible="0+"):
    """Ask for topics and their partitions a page at a time."""

    class TopicRequest(Struct):
        name: String

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    topics: list[TopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponse(Message, api=75, versions="0", flexible="0+"):
    """A page of topics and partitions, and where the next one starts."""

    class DescribeTopicPartitionsResponseTopic(Struct):
        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code: Int16
            partition_index: Int32
            leader_id: Int32
            leader_epoch: Int32 = -1
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            eligible_leader_replicas: list[Int32] | None = None
            last_known_elr: list[Int32] | None = None
            offline_replicas: list[Int32]

        error_code: Int16
        name: NullableString
        topic_id: Uuid
        is_internal: Bool
        partitions: list[DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: Int32 = -(2**31)

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    throttle_time_ms: Int32
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None
