"""The BeginQuorumEpoch API, key 53."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, UInt16, Uuid


class BeginQuorumEpochRequest(Message, api=53, versions="0-1", flexible="1+"):
    """Tell voters who leads the metadata quorum in a new epoch."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            voter_directory_id: Uuid = since(1, ignorable=True)
            leader_id: Int32
            leader_epoch: Int32

        topic_name: String
        partitions: list[PartitionData]

    class LeaderEndpoint(Struct):
        name: String
        host: String
        port: UInt16

    cluster_id: NullableString = None
    voter_id: Int32 = since(1, default=-1, ignorable=True)
    topics: list[TopicData]
    leader_endpoints: list[LeaderEndpoint] = since(1, ignorable=True)


class BeginQuorumEpochResponse(Message, api=53, versions="0-1", flexible="1+"):
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
