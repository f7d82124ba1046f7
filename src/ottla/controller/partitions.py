"""What leaders report of their partitions: who is in sync, and whether the leader has recovered.

R1  Only the leader of the current epoch is heard, and only if it knows the partition as it now is.
R2  Whoever enters the in-sync set is active, in the incarnation that the leader has seen (KIP-841, KIP-903).
"""

from typing import TYPE_CHECKING

from ottla.controller.election import Election, Transition
from ottla.controller.view import View
from ottla.metadata.topics import NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from ottla.wire.message import Message

_Topic = AlterPartitionResponse.TopicData
_Partition = _Topic.PartitionData
_Wish = AlterPartitionRequest.TopicData.PartitionData
_EPOCHS_SINCE = 3  # the version that names each replica's broker epoch (KIP-903)
_ANY_EPOCH = -1


def alter_partition(
    view: View, request: AlterPartitionRequest, version: int
) -> Decision[AlterPartitionResponse]:
    """Take over the in-sync replicas that a leader reports."""
    view.check_epoch(request.broker_id, request.broker_epoch)
    records: list[Message] = []
    answers = []
    for asked in request.topics:
        topic = view.image.topics.by_id.get(asked.topic_id)
        results = []
        for wish in asked.partitions:
            index = wish.partition_index
            if topic is None:
                results.append(_Partition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            isr = _in_sync(wish, version)
            state = topic.partitions.get(index)
            problem = _problem(view, request.broker_id, state, wish, isr)
            if problem or state is None:
                results.append(_Partition(partition_index=index, error_code=problem))
                continue
            transition = Transition(view, topic, index)
            if view.unclean_elections(topic.name):
                transition.election = Election.UNCLEAN
            transition.isr = tuple(broker for broker, _ in isr)
            transition.recovery = wish.leader_recovery_state
            record = transition.record()
            if record is not None:
                records.append(record)
                state = state.changed_by(record)
            if record is not None and record.leader not in {request.broker_id, NO_LEADER_CHANGE}:
                # The change completed a reassignment that takes the leader away from the one who reports.
                results.append(_Partition(partition_index=index, error_code=ErrorCode.NEW_LEADER_ELECTED))
                continue
            results.append(
                _Partition(
                    partition_index=index,
                    leader_id=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    leader_recovery_state=state.leader_recovery_state,
                    partition_epoch=state.partition_epoch,
                )
            )
        answers.append(_Topic(topic_id=asked.topic_id, partitions=results))
    return Decision(AlterPartitionResponse(topics=answers), tuple(records))


def _in_sync(wish: _Wish, version: int) -> list[tuple[int, int]]:
    """The brokers that shall be in sync, each with its epoch."""
    if version < _EPOCHS_SINCE:
        return [(broker, _ANY_EPOCH) for broker in wish.new_isr]
    return [(each.broker_id, each.broker_epoch) for each in wish.new_isr_with_epochs]


def _problem(
    view: View, broker_id: int, state: PartitionState | None, wish: _Wish, isr: list[tuple[int, int]]
) -> ErrorCode:
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # A leader that knows more than we do has heard from a newer controller.
    if wish.leader_epoch > state.leader_epoch or wish.partition_epoch > state.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if wish.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    if wish.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = {broker for broker, _ in isr}
    if len(members) != len(isr) or not members <= set(state.replicas) or state.leader not in members:
        return ErrorCode.INVALID_REQUEST
    recovering = wish.leader_recovery_state == RECOVERING
    if wish.leader_recovery_state not in {RECOVERED, RECOVERING} or (recovering and len(isr) > 1):
        return ErrorCode.INVALID_REQUEST
    if recovering and state.leader_recovery_state == RECOVERED:
        return ErrorCode.INVALID_REQUEST
    for replica, epoch in isr:
        broker = view.image.brokers.get(replica)
        if broker is None or not broker.active or epoch not in {_ANY_EPOCH, broker.epoch}:
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
