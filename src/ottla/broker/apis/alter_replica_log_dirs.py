"""AlterReplicaLogDirs (34): move partitions between the log directories of this broker (KIP-113).

The answer says that a move has begun; DescribeLogDirs shows how far it is. Naming the directory where a partition is
already stops a move to elsewhere.
"""

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.broker.directories import is_cordoned
from ottla.broker.replica import local_replica
from ottla.channel.connection import Connection
from ottla.log.directory import LogDirectory
from ottla.log.names import FUTURE_DIR, marked_dir
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Part = Topic.AlterReplicaLogDirPartitionResult

_DIR_NAME_CHARACTERS_MAX = 255


def handle(
    request: AlterReplicaLogDirsRequest, version: int, connection: Connection, broker: Broker
) -> AlterReplicaLogDirsResponse:
    """Begin every move that can be made."""
    wishes = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, list[Part]] = {}
    for (topic, index), path in wishes.items():
        part = Part(partition_index=index)
        topics.setdefault(topic, []).append(part)
        try:
            _move(broker, topic, index, path)
        except BrokerError as error:
            part.error_code = error.code
        except OSError:
            part.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return AlterReplicaLogDirsResponse(
        results=[Topic(topic_name=name, partitions=parts) for name, parts in topics.items()]
    )


def _move(broker: Broker, topic: str, index: int, path: str) -> None:
    if len(marked_dir(topic, index, bytes(16), FUTURE_DIR)) > _DIR_NAME_CHARACTERS_MAX:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    target = _directory(broker, path)
    if is_cordoned(broker, target):
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
    try:
        partition = local_replica(broker, topic, index)
    except BrokerError as error:
        # Kafka keeps the older code here, for the tools that know it.
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE) from None
        raise
    assert broker.mover is not None, "a node that serves has a mover"
    broker.mover.start(partition, target)


def _directory(broker: Broker, path: str) -> LogDirectory:
    for directory in broker.table.directories:
        if directory.path == path:
            if directory.offline:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
            return directory
    raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")


API = Api(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, handle)
