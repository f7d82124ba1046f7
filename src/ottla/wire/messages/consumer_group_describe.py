"""The ConsumerGroupDescribe API, key 69."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String, Uuid


class ConsumerGroupDescribeRequest(Message, api=69, versions="0-1", flexible="0+"):
    """Ask for the state and members of consumer groups."""

    group_ids: list[String]
    include_authorized_operations: Bool


class ConsumerGroupDescribeResponse(Message, api=69, versions="0-1", flexible="0+"):
    """Each consumer group's epochs, members and assignments."""

    class TopicPartitions(Struct):
        topic_id: Uuid
        topic_name: String
        partitions: list[Int32]

    class Assignment(Struct):
        topic_partitions: list["ConsumerGroupDescribeResponse.TopicPartitions"]

    class DescribedGroup(Struct):
        class Member(Struct):
            member_id: String
            instance_id: NullableString = None
            rack_id: NullableString = None
            member_epoch: Int32
            client_id: String
            client_host: String
            subscribed_topic_names: list[String]
            subscribed_topic_regex: NullableString = None
            assignment: "ConsumerGroupDescribeResponse.Assignment"
            target_assignment: "ConsumerGroupDescribeResponse.Assignment"
            member_type: Int8 = since(1, default=-1, ignorable=True)

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
