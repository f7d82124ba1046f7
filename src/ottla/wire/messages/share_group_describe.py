"""The ShareGroupDescribe API, key 77."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, Uuid


class ShareGroupDescribeRequest(Message, api=77, versions="1", flexible="0+"):
    """Ask for the state and members of share groups."""

    group_ids: list[String]
    include_authorized_operations: Bool


class ShareGroupDescribeResponse(Message, api=77, versions="1", flexible="0+"):
    """Each share group's epochs, members and assignments."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        topic_name: String
        partitions: list[Int32]

    class Assignment(Struct):
        topic_partitions: list["ShareGroupDescribeResponse.TopicPartitions"]

    class DescribedGroup(Struct):
        class Member(Struct):
            member_id: String
            rack_id: NullableString = None
            member_epoch: Int32
            client_id: String
            client_host: String
            subscribed_topic_names: list[String]
            assignment: "ShareGroupDescribeResponse.Assignment"

        error_code: Int16
        error_message: NullableString = None
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32
        assignor_name: String
        members: list[Member]
        authorized_operations: Int32 = -(2**31)

    throttle_time_ms: Int32
    groups: list[DescribedGroup]
