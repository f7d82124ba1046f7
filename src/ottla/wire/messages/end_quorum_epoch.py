"""The EndQuorumEpoch API, key 54."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, UInt16, Uuid


class EndQuorumEpochRequest(Message, api=54, versions="0-1", flexible="1+"):
    """Tell voters that a leader resigns, and who should stand first."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaInfo(Struct):
                candidate_id: Int32
                candidate_directory_id: Uuid

            partition_index: Int32
            leader_id: Int32
            leader_epoch: Int32
            preferred_successors: list[Int32] = since(0, until=0, ignorable=True)
            preferred_candidates: list[ReplicaInfo] = since(1, ignorable=True)

        topic_name: String
        partitions: list[PartitionData]

    class LeaderEndpoint(Struct):
        name: String
        host: String
        port: UInt16

    cluster_id: NullableString = None
    topics: list[TopicData]
    leader_endpoints: list[LeaderEndpoint] = since(1, ignorable=True)


class EndQuorumEpochResponse(Message, api=54, versions="0-1", flexible="1+"):
    """What the voter knows of leader and epoch."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: Int32

        topic_name: String
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    error_code: Int16
    topics: list[TopicData]
    node_endpoints: list[NodeEndpoint] = since(1, tag=0)
