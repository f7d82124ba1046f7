"""Moving replicas between brokers: beginning, giving up and listing reassignments.

A reassignment first adds the new replicas, waits until they are in sync, and then drops the old ones; that last step is
taken by `Transition.record` whenever the in-sync replicas change.

X1  While one is under way, `replicas` are those of the target, then those that leave.
X2  One that takes the place of another counts from where the partition was settled: what the first had added and the
    second wants is still awaited, what the first would have removed and the second wants stays. Kafka 4.3 forgets the
    one and removes the other, and never ends a move back to where the partition was.
X3  Giving up never needs an unclean election unless all that is in sync is what was being added.
"""

from typing import TYPE_CHECKING

from ottla.controller.create_topics import check_assignment
from ottla.controller.election import Election, Transition
from ottla.controller.view import View, check_size
from ottla.metadata.topics import PartitionState, Topic
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ottla.wire.records.metadata import PartitionChangeRecord

if TYPE_CHECKING:
    from ottla.wire.message import Message

_Answer = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Result = _Answer.ReassignablePartitionResponse
_Ongoing = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def alter_partition_reassignments(
    view: View, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Begin moving replicas, or give a move up where no replicas are named."""
    records: list[Message] = []
    answers = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            result = _Result(partition_index=partition.partition_index, error_message=None)
            try:
                record = _alter(
                    view,
                    topic.name,
                    partition.partition_index,
                    partition.replicas,
                    may_resize=request.allow_replication_factor_change,
                )
                if record is not None:
                    records.append(record)
            except BrokerError as error:
                result.error_code, result.error_message = error.code, error.message
            check_size(records)
            results.append(result)
        answers.append(_Answer(name=topic.name, partitions=results))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=answers,
    )
    return Decision(response, tuple(records))


def list_partition_reassignments(
    view: View, request: ListPartitionReassignmentsRequest
) -> Decision[ListPartitionReassignmentsResponse]:
    """Every reassignment that is under way, or those of the partitions named."""
    by_name, by_id = view.image.topics.by_name, view.image.topics.by_id
    if request.topics is None:
        moving_in: dict[bytes, list[int]] = {}
        for id, index in view.census.moving:
            moving_in.setdefault(id, []).append(index)
        asked = [(by_id[id], sorted(indexes)) for id, indexes in moving_in.items()]
    else:
        asked = [
            (by_name[each.name], each.partition_indexes) for each in request.topics if each.name in by_name
        ]
    answers = []
    for topic, indexes in asked:
        moving = [
            _Ongoing.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
            for index in indexes
            if (state := topic.partitions.get(index)) is not None and state.reassigning
        ]
        if moving:
            answers.append(_Ongoing(name=topic.name, partitions=moving))
    return Decision(ListPartitionReassignmentsResponse(error_message=None, topics=answers))


def _alter(
    view: View, name: str, index: int, replicas: list[int] | None, *, may_resize: bool
) -> PartitionChangeRecord | None:
    topic = view.image.topics.by_name.get(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    state = topic.partitions.get(index)
    if state is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        return _give_up(view, topic, index, state)
    check_assignment(view, replicas, None)
    if not may_resize:
        _check_size(state, replicas)
    settled = set(state.replicas) - set(state.adding)
    removing = sorted(set(state.replicas) - set(replicas))
    transition = Transition(view, topic, index)
    transition.replicas = (*replicas, *removing)
    transition.removing = tuple(removing)
    transition.adding = tuple(sorted(set(replicas) - settled))
    return transition.record()


def _give_up(view: View, topic: Topic, index: int, state: PartitionState) -> PartitionChangeRecord | None:
    if not state.reassigning:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(broker for broker in state.replicas if broker not in state.adding)
    isr = tuple(broker for broker in state.isr if broker not in state.adding)
    unclean = view.unclean_elections(topic.name)
    if state.isr and not isr:
        if not unclean:
            message = (
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if not replicas:
            message = "Invalid replica assignment: addingReplicas contains all replicas."
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        isr = replicas[:1]
    transition = Transition(view, topic, index)
    if unclean:
        transition.election = Election.UNCLEAN
    transition.replicas, transition.isr = replicas, isr
    transition.adding = transition.removing = ()
    return transition.record()


def _check_size(state: PartitionState, replicas: list[int]) -> None:
    settled = (set(state.replicas) | set(state.adding)) - set(state.removing)
    if len(settled) != len(replicas):
        message = f"The replication factor is changed from {len(settled)} to {len(replicas)}"
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
