"""The ShareGroupHeartbeat API, key 76."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, Uuid


class ShareGroupHeartbeatRequest(Message, api=76, versions="1", flexible="0+"):
    """The one request of a share group member: join, report, stay, leave."""

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: NullableString = None
    subscribed_topic_names: list[String] | None = None


class ShareGroupHeartbeatResponse(Message, api=76, versions="1", flexible="0+"):
    """The member's epoch, and its assignment when that changed."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    class Assignment(Struct):
        topic_partitions: list["ShareGroupHeartbeatResponse.TopicPartitions"]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None
