"""The ConsumerGroupHeartbeat API, key 68."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, Uuid


class ConsumerGroupHeartbeatRequest(Message, api=68, versions="0-1", flexible="0+"):
    """The one request of a consumer group member: join, report, stay, leave."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: NullableString = since(1, default=None)
    server_assignor: NullableString = None
    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatResponse(Message, api=68, versions="0-1", flexible="0+"):
    """The member's epoch, and its assignment when that changed."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    class Assignment(Struct):
        topic_partitions: list["ConsumerGroupHeartbeatResponse.TopicPartitions"]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None
