"""The AddRaftVoter API, key 80."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, UInt16, Uuid


class AddRaftVoterRequest(Message, api=80, versions="0-1", flexible="0+"):
    """Add a voter to the metadata quorum."""

    class Listener(Struct):
        name: String
        host: String
        port: UInt16

    cluster_id: NullableString
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[Listener]
    ack_when_committed: Bool = since(1, default=True)


class AddRaftVoterResponse(Message, api=80, versions="0-1", flexible="0+"):
    """Whether the voter was added."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
