"""The SyncGroup API, key 14."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int16, Int32, NullableString, String


class SyncGroupRequest(Message, api=14, versions="0-5", flexible="4+"):
    """Ask for a member's assignment; the leader hands in everyone's."""

    class SyncGroupRequestAssignment(Struct):
        member_id: String
        assignment: Bytes

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)
    protocol_type: NullableString = since(5, default=None, ignorable=True)
    protocol_name: NullableString = since(5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment]


class SyncGroupResponse(Message, api=14, versions="0-5", flexible="4+"):
    """The assignment of the member that asked."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
    protocol_type: NullableString = since(5, default=None, ignorable=True)
    protocol_name: NullableString = since(5, default=None, ignorable=True)
    assignment: Bytes
