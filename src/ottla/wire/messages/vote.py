"""The Vote API, key 52."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, NullableString, String, UInt16, Uuid


class VoteRequest(Message, api=52, versions="0-2", flexible="0+"):
    """Ask a voter of the metadata quorum for its vote, or, since v2, whether it would give it."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            replica_epoch: Int32
            replica_id: Int32
            replica_directory_id: Uuid = since(1, ignorable=True)
            voter_directory_id: Uuid = since(1, ignorable=True)
            last_offset_epoch: Int32
            last_offset: Int64
            pre_vote: Bool = since(2)

        topic_name: String
        partitions: list[PartitionData]

    cluster_id: NullableString = None
    voter_id: Int32 = since(1, default=-1, ignorable=True)
    topics: list[TopicData]


class VoteResponse(Message, api=52, versions="0-2", flexible="0+"):
    """The vote, with the leader and epoch the voter knows."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: Int32
            vote_granted: Bool

        topic_name: String
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    error_code: Int16
    topics: list[TopicData]
    node_endpoints: list[NodeEndpoint] = since(1, tag=0)
