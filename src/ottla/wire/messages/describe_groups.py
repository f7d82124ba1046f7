"""The DescribeGroups API, key 15."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Bytes, Int16, Int32, NullableString, String


class DescribeGroupsRequest(Message, api=15, versions="0-6", flexible="5+"):
    """Ask for the state and members of classic groups."""

    groups: list[String]
    include_authorized_operations: Bool = since(3)


class DescribeGroupsResponse(Message, api=15, versions="0-6", flexible="5+"):
    """Each group's state, protocol and members."""

    class DescribedGroup(Struct):
        class DescribedGroupMember(Struct):
            member_id: String
            group_instance_id: NullableString = since(4, default=None, ignorable=True)
            client_id: String
            client_host: String
            member_metadata: Bytes
            member_assignment: Bytes

        error_code: Int16
        error_message: NullableString = since(6, default=None)
        group_id: String
        group_state: String
        protocol_type: String
        protocol_data: String
        members: list[DescribedGroupMember]
        authorized_operations: Int32 = since(3, default=-(2**31))

    throttle_time_ms: Int32 = since(1, ignorable=True)
    groups: list[DescribedGroup]
