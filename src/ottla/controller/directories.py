"""Which log directory of a broker holds a replica: brokers decide, the controller remembers (KIP-858)."""

from typing import TYPE_CHECKING

from ottla.controller.election import Transition, change_leaders
from ottla.controller.view import View
from ottla.metadata.feature import DIRECTORIES_SINCE
from ottla.metadata.topics import PartitionState, Topic
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from ottla.wire.message import Message

_Directory = AssignReplicasToDirsResponse.DirectoryData
_Topic = _Directory.TopicData
_Partition = _Topic.PartitionData


def assign_replicas_to_dirs(
    view: View, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Note where a broker has put its replicas; those in a directory that is offline lose their leader."""
    if view.image.features.metadata_version < DIRECTORIES_SINCE:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    view.check_epoch(request.broker_id, request.broker_epoch)
    broker = view.image.brokers[request.broker_id]
    records: list[Message] = []
    offline: list[tuple[Topic, int, PartitionState]] = []
    answers = []
    for directory in request.directories:
        topics = []
        for wish in directory.topics:
            topic = view.image.topics.by_id.get(wish.topic_id)
            results = []
            for each in wish.partitions:
                index = each.partition_index
                code = _problem(topic, index, broker.id)
                if topic is not None and code == ErrorCode.NONE:
                    transition = Transition(view, topic, index)
                    transition.directories = {broker.id: directory.id}
                    record = transition.record()
                    if record is not None:
                        records.append(record)
                    if not broker.has_online(directory.id):
                        offline.append((topic, index, topic.partitions[index]))
                results.append(_Partition(partition_index=index, error_code=code))
            topics.append(_Topic(topic_id=wish.topic_id, partitions=results))
        answers.append(_Directory(id=directory.id, topics=topics))
    records += change_leaders(view, offline, without=broker.id)
    return Decision(AssignReplicasToDirsResponse(directories=answers), tuple(records))


def _problem(topic: Topic | None, index: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = topic.partitions.get(index)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
