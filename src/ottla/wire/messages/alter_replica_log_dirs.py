"""The AlterReplicaLogDirs API, key 34."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, String


class AlterReplicaLogDirsRequest(Message, api=34, versions="1-2", flexible="2+"):
    """Move replicas of a broker to another of its log directories."""

    class AlterReplicaLogDir(Struct):
        class AlterReplicaLogDirTopic(Struct):
            name: String
            partitions: list[Int32]

        path: String
        topics: list[AlterReplicaLogDirTopic]

    dirs: list[AlterReplicaLogDir]


class AlterReplicaLogDirsResponse(Message, api=34, versions="1-2", flexible="2+"):
    """Whether each move was accepted."""

    class AlterReplicaLogDirTopicResult(Struct):
        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: Int32
            error_code: Int16

        topic_name: String
        partitions: list[AlterReplicaLogDirPartitionResult]

    throttle_time_ms: Int32
    results: list[AlterReplicaLogDirTopicResult]
