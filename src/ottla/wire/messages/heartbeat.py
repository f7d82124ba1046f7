"""The Heartbeat API, key 12."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, NullableString, String


class HeartbeatRequest(Message, api=12, versions="0-4", flexible="4+"):
    """Keep a member's seat in a classic group."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)


class HeartbeatResponse(Message, api=12, versions="0-4", flexible="4+"):
    """Whether the seat is still held, or the group is rebalancing."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
