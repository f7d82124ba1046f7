"""What the broker tells the cluster about its log directories, and what the cluster has told it.

The broker chooses the directory of a new replica, and may move it later; the controller has to know, for when a
directory fails it must take leadership away from what lay there (KIP-858).
"""

from collections.abc import Iterable

from ottla.broker.broker import Broker
from ottla.log.directory import LogDirectory
from ottla.metadata.feature import CORDONED_SINCE, DIRECTORIES_SINCE
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

CORDONED = "cordoned.log.dirs"
_RETRY_S = 1.0

_Directory = AssignReplicasToDirsRequest.DirectoryData
_Topic = _Directory.TopicData

Name = tuple[str, int]


def is_cordoned(broker: Broker, directory: LogDirectory) -> bool:
    """Say whether a directory takes no new partitions (KIP-1066)."""
    if broker.image.features.metadata_version < CORDONED_SINCE:
        return False
    cordoned = broker.settings[CORDONED]
    assert isinstance(cordoned, tuple)
    return "*" in cordoned or directory.path in map(directory.disk.absolute, cordoned)


def cordoned_problem(broker: Broker, text: str) -> str | None:
    """What is wrong with a new value of `cordoned.log.dirs`, in Kafka's words; None when nothing is."""
    entries = [each.strip() for each in text.split(",")] if text.strip() else []
    if "*" in entries:
        others = len(entries) > 1
        return "When cordoned.log.dirs is set to *, it must not contain other values" if others else None
    for entry in entries:
        if not any(each.path == each.disk.absolute(entry) for each in broker.table.directories):
            return (
                f"Invalid value {entry} for configuration cordoned.log.dirs: Invalid entry in cordoned.log.dirs: "
                f"{entry}. All cordoned log dirs must be entries of log.dirs or log.dir."
            )
    return None


def cordoned_ids(broker: Broker) -> list[bytes] | None:
    """The ids of the directories that take no new partitions; None while the metadata cannot say so."""
    if broker.image.features.metadata_version < CORDONED_SINCE:
        return None
    return [directory_id(each) for each in broker.table.directories if is_cordoned(broker, each)]


def record_directory(broker: Broker, partition: Partition, directory: LogDirectory) -> None:
    """Tell the controller that a replica lies in `directory` now."""
    _assign(broker, {directory.path: [(partition.topic, partition.index)]})


def record_misplaced(broker: Broker, names: Iterable[Name]) -> None:
    """Tell the controller where replicas lie, as far as it has another word or none.

    That is so for new partitions where there are several directories, and after a crash in the middle of a move.
    """
    places: dict[str, list[Name]] = {}
    for name in names:
        state = broker.image.partition(*name)
        if state is None or broker.node_id not in state.replicas:
            continue
        for directory in broker.table.directories:
            if name in directory.logs and state.directory_of(broker.node_id) != directory_id(directory):
                places.setdefault(directory.path, []).append(name)
    if places:
        _assign(broker, places)


def directory_id(directory: LogDirectory) -> bytes:
    """Return the id of a directory that was formatted."""
    assert directory.identity is not None, "a directory in use has been formatted"
    return directory.identity.directory_id


def _assign(broker: Broker, places: dict[str, list[Name]]) -> None:
    """Send the word, and again until it has been heard; what has gone or moved on meanwhile is left out."""
    registered = broker.image.brokers.get(broker.node_id)
    if broker.image.features.metadata_version < DIRECTORIES_SINCE or registered is None:
        return
    request = AssignReplicasToDirsRequest(broker_id=broker.node_id, broker_epoch=registered.epoch)
    for directory in broker.table.directories:
        topics: dict[bytes, _Topic] = {}
        for name in places.get(directory.path, ()):
            found = broker.image.topics.by_name.get(name[0])
            if found is not None and name in directory.logs and not directory.offline:
                topic = topics.setdefault(found.id, _Topic(topic_id=found.id))
                topic.partitions.append(_Topic.PartitionData(partition_index=name[1]))
        if topics:
            request.directories.append(_Directory(id=directory_id(directory), topics=list(topics.values())))

    def done(outcome: AssignReplicasToDirsResponse | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            broker.call_later(_RETRY_S, lambda: _assign(broker, places))

    if request.directories:
        broker.ask_controller(
            request,
            AssignReplicasToDirsResponse,
            lambda controller, now: controller.assign_replicas_to_dirs(request, now),
            done,
        )
