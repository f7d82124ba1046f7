"""The DescribeQuorum API, key 55."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, UInt16, Uuid


class DescribeQuorumRequest(Message, api=55, versions="0-2", flexible="0+"):
    """Ask for the state of the metadata quorum."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32

        topic_name: String
        partitions: list[PartitionData]

    topics: list[TopicData]


class DescribeQuorumResponse(Message, api=55, versions="0-2", flexible="0+"):
    """Leader, voters and observers of the quorum, with their progress."""

    class ReplicaState(Struct):
        replica_id: Int32
        replica_directory_id: Uuid = since(2)
        log_end_offset: Int64
        last_fetch_timestamp: Int64 = since(1, default=-1, ignorable=True)
        last_caught_up_timestamp: Int64 = since(1, default=-1, ignorable=True)

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: NullableString = since(2, ignorable=True)
            leader_id: Int32
            leader_epoch: Int32
            high_watermark: Int64
            current_voters: list["DescribeQuorumResponse.ReplicaState"]
            observers: list["DescribeQuorumResponse.ReplicaState"]

        topic_name: String
        partitions: list[PartitionData]

    class Node(Struct):
        class Listener(Struct):
            name: String
            host: String
            port: UInt16

        node_id: Int32
        listeners: list[Listener]

    error_code: Int16
    error_message: NullableString = since(2, ignorable=True)
    topics: list[TopicData]
    nodes: list[Node] = since(2)
