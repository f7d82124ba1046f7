"""The share groups of one partition of `__consumer_offsets`: all that can be asked of them.

S1  A member is heard from within its session, or it is out.
S2  State changes in `apply` alone, record by record; a record of a group that is not there makes it, a tombstone of one
    is nothing. So a member that leaves keeps its session until that is written down: the journal may refuse it.
    A tombstone takes along whatever depends on what has gone: the log may lack the tombstones that went before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from ottla.groups.description import ALL
from ottla.groups.epochs import group_of
from ottla.groups.group import Kind
from ottla.groups.share import heartbeat as beat
from ottla.groups.share import records
from ottla.groups.share.describe import (
    AskedOffsets,
    Described,
    EndOffset,
    GroupOffsets,
    describe,
    offsets_described,
    summary_request,
)
from ottla.groups.share.desk import Desk, session_key
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import LEAVES, Member
from ottla.groups.share.offsets import Offsets
from ottla.groups.share.progress import Progress, Topic
from ottla.groups.shelf import Shelf, TimerKey
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.replicated.steps import Piece, Steps, cost_of, in_steps
from ottla.wire.message import Message
from ottla.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateResponse
from ottla.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

_TOPIC_COST = 20  # of a topic in a record, and a batch holds as many as cost a step


class ShareGroups:
    """Membership of share groups, and which share partitions have state."""

    __slots__ = ("_desk", "_offsets")

    def __init__(self, shelf: Shelf) -> None:
        self._desk = Desk(shelf)
        self._offsets = Offsets(self._desk)

    def apply(self, record: KeyedRecord) -> None:
        """Take one record in."""
        key: Any = record.key
        groups = self._desk.shelf.groups
        group = group_of(groups, record, ShareGroup)
        if group is None:
            return
        if isinstance(key, ShareGroupMetadataKey) and record.value is None:
            del groups[group.id]
        else:
            _fold(group, key, record.value)
            if record.value is None and isinstance(key, ShareGroupMemberMetadataKey):
                self._desk.shelf.timers.cancel(session_key(group.id, key.member_id))

    def loaded(self, now: int) -> None:
        """The log is read: give every member a whole session, and every share coordinator time to answer."""
        for group in self._desk.shelf.groups.values():
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._desk.await_heartbeat(group.id, member_id, now)
                for topic_id in group.progress.initializing if group.progress else ():
                    self._desk.asked(group.id, topic_id, now)

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client, now: int
    ) -> Decision[ShareGroupHeartbeatResponse]:
        """Serve ShareGroupHeartbeat; BrokerError says why not.

        Effect: `InitializeState` without a token, whose answer goes to `state_initialized`; the reply does not wait.
        """
        beat.check(request)
        if request.member_epoch == LEAVES:
            return beat.leave(self._desk, request.group_id, request.member_id)
        return beat.heartbeat(self._desk, request, client, now)

    def describe(self, group_ids: Iterable[str], members: slice = ALL) -> list[Described]:
        """Serve ShareGroupDescribe for groups of this partition."""
        return [describe(self._desk, group_id, members) for group_id in group_ids]

    def summary_request(self, asked: AskedOffsets) -> Decision[ReadShareGroupStateSummaryRequest]:
        """Begin to serve DescribeShareGroupOffsets for a group: return what to ask the share coordinators."""
        return Decision(summary_request(self._desk, asked))

    def offsets_described(
        self,
        asked: AskedOffsets,
        response: ReadShareGroupStateSummaryResponse,
        end_offsets: Mapping[tuple[bytes, int], EndOffset],
    ) -> Decision[GroupOffsets]:
        """End to serve DescribeShareGroupOffsets, with the answers and the ends of partitions for which `has_lag`."""
        return Decision(offsets_described(self._desk, asked, response, end_offsets))

    def alter_offsets(self, token: int, request: AlterShareGroupOffsetsRequest, now: int) -> Decision[None]:
        """Serve AlterShareGroupOffsets; NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another kind.

        Effects: `InitializeState` with the token, or the `Answer` when there is nothing to ask for.
        """
        return self._offsets.alter(token, request, now)

    def delete_offsets(self, token: int, request: DeleteShareGroupOffsetsRequest) -> Decision[None]:
        """Serve DeleteShareGroupOffsets; NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.

        Effects: `DeleteState` with the token, or the `Answer` when there is nothing to ask for.
        """
        return self._offsets.delete(token, request)

    def state_initialized(
        self, group_id: str, response: InitializeShareGroupStateResponse, token: int | None, now: int
    ) -> Decision[None]:
        """Learn what became of an `InitializeState`. Effect: the `Answer` to AlterShareGroupOffsets."""
        return self._offsets.initialized(group_id, response, token, now)

    def state_deleted(
        self, group_id: str, response: DeleteShareGroupStateResponse, token: int
    ) -> Decision[None]:
        """Learn what became of a `DeleteState`. Effect: the `Answer` to DeleteShareGroupOffsets."""
        return self._offsets.deleted(group_id, response, token)

    def delete_state(self, group_id: str) -> Decision[DeleteShareGroupStateRequest | None]:
        """Begin to delete a group: return what to ask the share coordinators first, None when there is nothing.

        Once they have done it the group goes with its `tombstones`; NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        return self._offsets.delete_all(group_id)

    def forget(self, token: int) -> None:
        """Nobody waits for the answer to a token any more."""
        self._offsets.forget(token)

    def topics_deleted(self, topic_ids: Set[bytes]) -> Steps:
        """Forget that topics that are no more had state; the share coordinators forget the state by themselves."""
        return in_steps(self._without(lambda progress: progress.spoken_of(topic_ids)))

    def forget_gone(self) -> Steps:
        """Forget topics that were deleted while nobody looked after these groups."""
        by_id = self._desk.shelf.topics.by_id
        return in_steps(
            self._without(
                lambda progress: {topic_id for topic_id in progress.topic_ids if by_id(topic_id) is None}
            )
        )

    def _without(self, gone: Callable[[Progress], Set[bytes]]) -> Iterator[Piece]:
        groups = self._desk.shelf.groups
        for group_id in tuple(groups):
            group = groups.get(group_id)
            if not isinstance(group, ShareGroup) or group.progress is None:
                continue
            progress = group.progress
            found = gone(progress)
            if found:
                # What a group knows of its topics is one record.
                wanted = (records.progress(group.id, progress.without(found)),)
                yield cost_of(group.id) + _TOPIC_COST * progress.topic_count, wanted
            else:
                yield progress.topic_count, ()

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Let a member go that was not heard from."""
        group = self._desk.shelf.groups.get(key[1])
        if group is None or group.kind is not Kind.SHARE:
            return Decision(None)
        assert isinstance(group, ShareGroup)
        member = group.members.get(key[3])
        return Decision(None, () if member is None else tuple(beat.fence(self._desk, group, member)))


def _fold(group: ShareGroup, key: Message, value: Any) -> None:
    match key:
        case ShareGroupMetadataKey():
            group.epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        case ShareGroupMemberMetadataKey():
            member = group.members.get(key.member_id)
            if value is not None:
                group.put((member or Member(key.member_id)).with_subscription(value))
            elif member is not None:
                group.set_target(member.id, None)
                group.remove(member.id)
        case ShareGroupTargetAssignmentMetadataKey():
            group.assignment_epoch = -1 if value is None else value.assignment_epoch
            group.assignment_timestamp = 0 if value is None else value.assignment_timestamp
        case ShareGroupTargetAssignmentMemberKey():
            parts = () if value is None else value.topic_partitions
            assignment = {each.topic_id: frozenset(each.partitions) for each in parts}
            group.set_target(key.member_id, None if value is None else assignment)
        case ShareGroupCurrentMemberAssignmentKey():
            member = group.members.get(key.member_id)
            if member is not None or value is not None:
                group.put((member or Member(key.member_id)).with_assignment(value))
        case ShareGroupStatePartitionMetadataKey():
            group.progress = None if value is None else _progress(value)
        case _:
            raise AssertionError(f"{key} is of no share group")


def _progress(value: ShareGroupStatePartitionMetadataValue) -> Progress:
    initializing, initialized = (
        {each.topic_id: Topic(each.topic_name, frozenset(each.partitions)) for each in topics}
        for topics in (value.initializing_topics, value.initialized_topics)
    )
    return Progress(
        initializing, initialized, {each.topic_id: each.topic_name for each in value.deleting_topics}
    )
