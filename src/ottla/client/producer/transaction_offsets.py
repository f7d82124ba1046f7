"""The offsets of a group that a transaction commits."""

from typing import NamedTuple, Self

from ottla.client.consumer.listener import GroupMetadata
from ottla.client.producer.response_action import CoordinatorCall, ResponseAction, action_for
from ottla.client.producer.sequence import ProducerId
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


class GroupMember(NamedTuple):
    """A group, and its member whose offsets are committed."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    @classmethod
    def of(cls, given: GroupMetadata | str) -> Self:
        """Return the member of a consumer's group metadata, or a group without members for a group id."""
        if isinstance(given, str):
            return cls(given)
        return cls(given.group_id, given.generation_id, given.member_id, given.group_instance_id)


class OffsetsToCommit:
    """The offsets that the coordinator of the group has not accepted yet."""

    def __init__(
        self,
        transactional_id: str,
        producer: ProducerId,
        member: GroupMember,
        left: dict[TopicPartition, OffsetAndMetadata],
    ) -> None:
        self._transactional_id = transactional_id
        self._producer = producer
        self._member = member
        self._left = left

    def request(self) -> TxnOffsetCommitRequest:
        """Return the next request."""
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics: dict[
            str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition]
        ]
        topics = {}
        for partition, offset in self._left.items():
            topics.setdefault(partition.topic, []).append(
                topic.TxnOffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        return TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=self._member.group_id,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            generation_id_or_member_epoch=self._member.generation_id,
            member_id=self._member.member_id,
            group_instance_id=self._member.group_instance_id,
            topics=[topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )

    def take(self, answer: TxnOffsetCommitResponse) -> int:
        """Handle an answer. Return the code that decides what to do with the remaining offsets."""
        worst = ErrorCode.NONE
        for topic in answer.topics:
            for result in topic.partitions:
                code = ErrorCode(result.error_code)
                if code is ErrorCode.NONE:
                    self._left.pop(TopicPartition(topic.name, result.partition_index), None)
                elif (
                    _RANK[action_for(CoordinatorCall.COMMIT_OFFSETS, code)]
                    >= _RANK[action_for(CoordinatorCall.COMMIT_OFFSETS, worst)]
                ):
                    worst = code
        if worst is ErrorCode.NONE and self._left:
            return (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )  # some are missing in the answer, so they are sent again
        return worst


_RANK = {
    ResponseAction.DONE: 0,
    ResponseAction.RETRY: 1,
    ResponseAction.FIND_COORDINATOR: 2,
    ResponseAction.ABORT: 3,
    ResponseAction.BUMP_EPOCH: 3,
    ResponseAction.NOT_ALLOWED: 4,
    ResponseAction.FAIL: 4,
}
