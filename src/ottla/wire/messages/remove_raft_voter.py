"""The RemoveRaftVoter API, key 81."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, NullableString, Uuid


class RemoveRaftVoterRequest(Message, api=81, versions="0", flexible="0+"):
    """Remove a voter from the metadata quorum."""

    cluster_id: NullableString
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Message, api=81, versions="0", flexible="0+"):
    """Whether the voter was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
