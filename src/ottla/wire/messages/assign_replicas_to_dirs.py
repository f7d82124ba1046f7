"""The AssignReplicasToDirs API, key 73."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, Uuid


class AssignReplicasToDirsRequest(Message, api=73, versions="0", flexible="0+"):
    """A broker tells the controller in which log directories its replicas lie."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: Int32

            topic_id: Uuid
            partitions: list[PartitionData]

        id: Uuid
        topics: list[TopicData]

    broker_id: Int32
    broker_epoch: Int64 = -1
    directories: list[DirectoryData]


class AssignReplicasToDirsResponse(Message, api=73, versions="0", flexible="0+"):
    """Whether each placement was recorded."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: Int32
                error_code: Int16

            topic_id: Uuid
            partitions: list[PartitionData]

        id: Uuid
        topics: list[TopicData]

    throttle_time_ms: Int32
    error_code: Int16
    directories: list[DirectoryData]
