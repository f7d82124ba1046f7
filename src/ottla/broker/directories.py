"""What the broker tells the cluster about its log directories, and what the cluster has told it."""

from ottla.broker.broker import Broker
from ottla.log.directory import LogDirectory
from ottla.metadata.feature import CORDONED_SINCE, DIRECTORIES_SINCE
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

_RETRY_S = 1.0

_Directory = AssignReplicasToDirsRequest.DirectoryData
_Topic = _Directory.TopicData


def is_cordoned(broker: Broker, directory: LogDirectory) -> bool:
    """Say whether a directory takes no new partitions (KIP-1066)."""
    if broker.image.features.metadata_version < CORDONED_SINCE:
        return False
    cordoned = broker.settings["cordoned.log.dirs"]
    assert isinstance(cordoned, tuple)
    return "*" in cordoned or directory.path in cordoned


def record_directory(broker: Broker, partition: Partition, directory: LogDirectory) -> None:
    """Tell the controller where a replica lies now, and again until it has heard (KIP-858)."""
    registered = broker.image.brokers.get(broker.node_id)
    if broker.image.features.metadata_version < DIRECTORIES_SINCE or registered is None:
        return
    assert directory.identity is not None, "a directory in use has been formatted"
    place = _Topic.PartitionData(partition_index=partition.index)
    request = AssignReplicasToDirsRequest(
        broker_id=broker.node_id,
        broker_epoch=registered.epoch,
        directories=[
            _Directory(
                id=directory.identity.directory_id,
                topics=[_Topic(topic_id=partition.topic_id, partitions=[place])],
            )
        ],
    )

    def done(outcome: AssignReplicasToDirsResponse | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            broker.call_later(_RETRY_S, again)

    def again() -> None:
        # The partition may have gone, or moved on, meanwhile.
        if directory.logs.get((partition.topic, partition.index)) is partition.log:
            record_directory(broker, partition, directory)

    broker.submit(lambda controller, now: controller.assign_replicas_to_dirs(request, now), done)
