"""Share groups in `__consumer_offsets`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int32, Int64, NullableString, String, Uuid


class ShareGroupMemberMetadataKey(Message, api=10, versions="0"):
    """Key of a share group member's subscription."""

    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(Message, api=10, versions="0", flexible="0+"):
    """A share group member's subscription."""

    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


class ShareGroupMetadataKey(Message, api=11, versions="0"):
    """Key of a share group's epoch."""

    group_id: String


class ShareGroupMetadataValue(Message, api=11, versions="0", flexible="0+"):
    """A share group's epoch, and the hash of the topics it was computed for."""

    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(Message, api=12, versions="0"):
    """Key of the epoch of a share group's target assignment."""

    group_id: String


class ShareGroupTargetAssignmentMetadataValue(Message, api=12, versions="0", flexible="0+"):
    """The epoch of a share group's target assignment."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, api=13, versions="0"):
    """Key of one member's share of a share group's target assignment."""

    group_id: String
    member_id: String


class ShareGroupTargetAssignmentMemberValue(Message, api=13, versions="0", flexible="0+"):
    """One member's share of a share group's target assignment."""

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartition]


class ShareGroupCurrentMemberAssignmentKey(Message, api=14, versions="0"):
    """Key of what a share group member holds now."""

    group_id: String
    member_id: String


class ShareGroupCurrentMemberAssignmentValue(Message, api=14, versions="0", flexible="0+"):
    """What a share group member holds now."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(Message, api=15, versions="0"):
    """Key of the progress in creating a share group's durable state."""

    group_id: String


class ShareGroupStatePartitionMetadataValue(Message, api=15, versions="0", flexible="0+"):
    """Which share partitions have durable state, are getting it, or are losing it."""

    class TopicPartitionsInfo(Struct):
        topic_id: Uuid
        topic_name: String
        partitions: list[Int32]

    class TopicInfo(Struct):
        topic_id: Uuid
        topic_name: String

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
