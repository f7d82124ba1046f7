"""Classic groups in `__consumer_offsets`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int32, Int64, NullableString, String


class GroupMetadataKey(Message, api=2, versions="0"):
    """Key of a classic group."""

    group: String


class GroupMetadataValue(Message, api=2, versions="0-4", flexible="4+"):
    """A classic group: protocol, generation, leader and members."""

    class MemberMetadata(Struct):
        member_id: String
        group_instance_id: NullableString = since(3, default=None, ignorable=True)
        client_id: String
        client_host: String
        rebalance_timeout: Int32 = since(1, default=-1, ignorable=True)
        session_timeout: Int32
        subscription: Bytes
        assignment: Bytes

    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    current_state_timestamp: Int64 = since(2, default=-1, ignorable=True)
    members: list[MemberMetadata]
