"""The LeaveGroup API, key 13."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String


class LeaveGroupRequest(Message, api=13, versions="0-5", flexible="4+"):
    """Give up seats in a classic group; v3 lets an administrator remove several."""

    class MemberIdentity(Struct):
        member_id: String
        group_instance_id: NullableString = None
        reason: NullableString = since(5, default=None, ignorable=True)

    group_id: String
    member_id: String = since(0, until=2)
    members: list[MemberIdentity] = since(3)


class LeaveGroupResponse(Message, api=13, versions="0-5", flexible="4+"):
    """Whether each member was let go."""

    class MemberResponse(Struct):
        member_id: String
        group_instance_id: NullableString
        error_code: Int16

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
    members: list[MemberResponse] = since(3)
