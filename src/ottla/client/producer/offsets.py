"""Offsets of a group on their way into a transaction."""

from typing import NamedTuple, Protocol

from ottla.client.producer.reaction import Errand, Reaction, react
from ottla.client.producer.sequence import ProducerId
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


class GroupMetadata(Protocol):
    """What a consumer's `group_metadata` tells of its membership."""

    @property
    def group_id(self) -> str:
        """The group."""
        ...

    @property
    def generation_id(self) -> int:
        """The generation, or the member's epoch."""
        ...

    @property
    def member_id(self) -> str:
        """The member."""
        ...

    @property
    def group_instance_id(self) -> str | None:
        """The name of a static member."""
        ...


class GroupMember(NamedTuple):
    """A group, and who in it has read what is committed."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    @classmethod
    def of(cls, given: "GroupMetadata | str") -> "GroupMember":
        """Return the member that a consumer's group metadata speaks of, or a group without members."""
        if isinstance(given, str):
            return cls(given)
        return cls(given.group_id, given.generation_id, given.member_id, given.group_instance_id)


class OffsetsToCommit:
    """The offsets that the coordinator of the group has not taken yet."""

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
        """Return what to ask for next."""
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics: dict[
            str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition]
        ]
        topics = {}
        for place, offset in self._left.items():
            topics.setdefault(place.topic, []).append(
                topic.TxnOffsetCommitRequestPartition(
                    partition_index=place.partition,
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
        """Take in an answer; return the code that decides what to do about the rest."""
        worst = ErrorCode.NONE
        for topic in answer.topics:
            for result in topic.partitions:
                code = ErrorCode(result.error_code)
                if code is ErrorCode.NONE:
                    self._left.pop(TopicPartition(topic.name, result.partition_index), None)
                elif _RANK[react(Errand.COMMIT_OFFSETS, code)] >= _RANK[react(Errand.COMMIT_OFFSETS, worst)]:
                    worst = code
        if worst is ErrorCode.NONE and self._left:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # it says nothing of some, so they are asked for again
        return worst


_RANK = {
    Reaction.DONE: 0,
    Reaction.AGAIN: 1,
    Reaction.ELSEWHERE: 2,
    Reaction.ABORT: 3,
    Reaction.RENUMBER: 3,
    Reaction.DENIED: 4,
    Reaction.DOOM: 4,
}
