"""The UpdateRaftVoter API, key 82."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, UInt16, Uuid


class UpdateRaftVoterRequest(Message, api=82, versions="0", flexible="0+"):
    """A voter makes its listeners and supported kraft versions known."""

    class Listener(Struct):
        name: String
        host: String
        port: UInt16

    class KRaftVersionFeature(Struct):
        min_supported_version: Int16
        max_supported_version: Int16

    cluster_id: NullableString
    current_leader_epoch: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[Listener]
    kraft_version_feature: KRaftVersionFeature


class UpdateRaftVoterResponse(Message, api=82, versions="0", flexible="0+"):
    """Whether the voter was updated, and who leads."""

    class CurrentLeader(Struct):
        leader_id: Int32 = -1
        leader_epoch: Int32 = -1
        host: String
        port: Int32

    throttle_time_ms: Int32
    error_code: Int16
    current_leader: CurrentLeader | None = since(0, default=None, tag=0)
