"""The file `quorum-state` of a voter."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int32, Int64, String, Uuid


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    """A voter's durable state: the epoch, its vote and the leader it knows.

    Kept as JSON in `quorum-state`.
    """

    class Voter(Struct):
        voter_id: Int32

    cluster_id: String = since(0, until=0)
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    voted_id: Int32 = -1
    voted_directory_id: Uuid = since(1)
    applied_offset: Int64 = since(0, until=0)
    current_voters: list[Voter] | None = since(0, until=0)
