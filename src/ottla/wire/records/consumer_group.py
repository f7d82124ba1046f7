"""Consumer groups in `__consumer_offsets`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int8, Int32, Int64, NullableString, String, Uuid


class ConsumerGroupMetadataKey(Message, api=3, versions="0"):
    """Key of a consumer group's epoch."""

    group_id: String


class ConsumerGroupMetadataValue(Message, api=3, versions="0", flexible="0+"):
    """A consumer group's epoch, and the hash of the topics it was computed for."""

    epoch: Int32
    metadata_hash: Int64 = since(0, tag=0)


class ConsumerGroupPartitionMetadataKey(Message, api=4, versions="0"):
    """Key of the topics a consumer group subscribes to, as early brokers wrote them."""

    group_id: String


class ConsumerGroupPartitionMetadataValue(Message, api=4, versions="0", flexible="0+"):
    """The topics a consumer group subscribes to, as early brokers wrote them."""

    class TopicMetadata(Struct):
        class PartitionMetadata(Struct):
            partition: Int32
            racks: list[String]

        topic_id: Uuid
        topic_name: String
        num_partitions: Int32
        partition_metadata: list[PartitionMetadata]

    topics: list[TopicMetadata]


class ConsumerGroupMemberMetadataKey(Message, api=5, versions="0"):
    """Key of a consumer group member's subscription."""

    group_id: String
    member_id: String


class ConsumerGroupMemberMetadataValue(Message, api=5, versions="0", flexible="0+"):
    """A consumer group member's subscription; also what a classic member of the group said of itself."""

    class ClassicMemberMetadata(Struct):
        class ClassicProtocol(Struct):
            name: String
            metadata: Bytes

        session_timeout_ms: Int32
        supported_protocols: list[ClassicProtocol]

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: NullableString
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString
    classic_member_metadata: ClassicMemberMetadata | None = since(0, nullable="0+", tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Message, api=6, versions="0"):
    """Key of the epoch of a consumer group's target assignment."""

    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Message, api=6, versions="0", flexible="0+"):
    """The epoch of a consumer group's target assignment."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, api=7, versions="0"):
    """Key of one member's share of a consumer group's target assignment."""

    group_id: String
    member_id: String


class ConsumerGroupTargetAssignmentMemberValue(Message, api=7, versions="0", flexible="0+"):
    """One member's share of a consumer group's target assignment."""

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(Message, api=8, versions="0"):
    """Key of what a consumer group member holds now."""

    group_id: String
    member_id: String


class ConsumerGroupCurrentMemberAssignmentValue(Message, api=8, versions="0", flexible="0+"):
    """What a consumer group member holds now, and what it is giving up."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]
        assignment_epochs: list[Int32] | None = since(0, tag=0)

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


class ConsumerGroupRegularExpressionKey(Message, api=16, versions="0"):
    """Key of a resolved regular expression of a consumer group."""

    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Message, api=16, versions="0", flexible="0+"):
    """The topics a regular expression of a consumer group stood for."""

    topics: list[String]
    version: Int64
    timestamp: Int64
