"""The JoinGroup API, key 11."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Bytes, Int16, Int32, NullableString, String


class JoinGroupRequest(Message, api=11, versions="0-9", flexible="6+"):
    """Enter a classic group, or its next generation, with the protocols a member speaks."""

    class JoinGroupRequestProtocol(Struct):
        name: String
        metadata: Bytes

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = since(1, default=-1, ignorable=True)
    member_id: String
    group_instance_id: NullableString = since(5, default=None)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: NullableString = since(8, default=None, ignorable=True)


class JoinGroupResponse(Message, api=11, versions="0-9", flexible="6+"):
    """The generation joined; the leader also learns the members and their subscriptions."""

    class JoinGroupResponseMember(Struct):
        member_id: String
        group_instance_id: NullableString = since(5, default=None, ignorable=True)
        metadata: Bytes

    throttle_time_ms: Int32 = since(2, ignorable=True)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: NullableString = since(7, default=None, ignorable=True)
    protocol_name: NullableString = since(0, nullable="7+")
    leader: String
    skip_assignment: Bool = since(9)
    member_id: String
    members: list[JoinGroupResponseMember]
