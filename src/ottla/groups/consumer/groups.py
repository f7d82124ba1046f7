"""Consumer groups of one partition of `__consumer_offsets`: their commands, their records, their timers.

L1  Groups change in `apply` alone. A command leaves records, and timers; a timer of what has gone does nothing.
L2  What is wrong with a request is said in its answer; the commands of classic members answer by `Answer`, at once.
"""

from collections.abc import Iterable

from ottla.groups.classic.answers import refused_join, refused_sync
from ottla.groups.classic.joining import bytes_of
from ottla.groups.classic.leaving import leave_response, leavers, outcome
from ottla.groups.classic.member import Waiting
from ottla.groups.consumer import classic_member
from ottla.groups.consumer.departure import fence
from ottla.groups.consumer.describe import DescribedGroup, describe
from ottla.groups.consumer.desk import Desk, Match, no_engine
from ottla.groups.consumer.fold import fold
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat, leave
from ottla.groups.consumer.member import LEAVES, LEAVES_FOR_NOW, Member, MemberState
from ottla.groups.consumer.regex import resolve
from ottla.groups.consumer.request import check_request
from ottla.groups.description import ALL
from ottla.groups.member_limits import SAID_BYTES_MAX
from ottla.groups.shelf import Shelf, TimerKey
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Answer, Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest


class ConsumerGroups:
    """All consumer groups of a partition; `match` compiles regular expressions and tests whole names with them."""

    __slots__ = ("_desk",)

    def __init__(self, shelf: Shelf, match: Match = no_engine) -> None:
        self._desk = Desk(shelf, match)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int, client: Client, now: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Serve ConsumerGroupHeartbeat, versions 0 and 1."""
        try:
            check_request(request, version, self._desk.assignors)
            if request.member_epoch in (LEAVES, LEAVES_FOR_NOW):
                return leave(self._desk, request, now)
            return heartbeat(self._desk, request, client, now)
        except BrokerError as error:
            return Decision(
                ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            )

    def describe(self, group_ids: Iterable[str], members: slice = ALL) -> list[DescribedGroup]:
        """Serve ConsumerGroupDescribe, versions 0 and 1; which operations are allowed is the caller's to add."""
        return [describe(self._desk, group_id, members) for group_id in group_ids]

    def classic_join(
        self, request: JoinGroupRequest, version: int, client: Client, token: int, now: int
    ) -> Decision[None]:
        """Serve JoinGroup for a consumer group with members; answered by an `Answer(token, JoinGroupResponse)`."""
        waiting = Waiting(token, version)
        try:
            response, records = classic_member.join(self._desk, request, version, client, now)
        except classic_member.IdRequired as call:
            return _answer(refused_join(waiting, ErrorCode.MEMBER_ID_REQUIRED, call.member_id))
        except BrokerError as error:
            named = request.member_id if error.code is ErrorCode.INVALID_SESSION_TIMEOUT else ""
            return _answer(refused_join(waiting, error.code, named))
        # With it go targets, or a whole group that is classic again; what the member itself says has a limit.
        any_length = bytes_of(request) <= SAID_BYTES_MAX
        return Decision(None, tuple(records), (Answer(token, response),), any_length=any_length)

    def classic_sync(self, request: SyncGroupRequest, version: int, token: int, now: int) -> Decision[None]:
        """Serve SyncGroup for a consumer group with members; answered by an `Answer(token, SyncGroupResponse)`."""
        try:
            response = classic_member.sync(self._desk, request, now)
        except BrokerError as error:
            return _answer(refused_sync(Waiting(token, version), error.code))
        return _answer(Answer(token, response))

    def classic_heartbeat(self, request: HeartbeatRequest, now: int) -> Decision[HeartbeatResponse]:
        """Serve Heartbeat for a consumer group."""
        try:
            return Decision(classic_member.heartbeat(self._desk, request, now))
        except BrokerError as error:
            return Decision(HeartbeatResponse(error_code=error.code))

    def classic_leave(
        self, request: LeaveGroupRequest, version: int, now: int
    ) -> Decision[LeaveGroupResponse]:
        """Serve LeaveGroup for a consumer group."""
        try:
            return classic_member.leave(self._desk, request, version, now)
        except BrokerError as error:
            outcomes = [outcome(each, error.code) for each in leavers(request, version)]
            return Decision(leave_response(outcomes, version))

    def apply(self, record: KeyedRecord) -> None:
        """Take in one of the records of consumer groups."""
        fold(self._desk.shelf.groups, record)
        self._desk.applied(record)

    def lead(self, now: int) -> Decision[None]:
        """Begin to lead: all members have a whole session to be heard from, and time to give up what they must."""
        for group in self._desk.shelf.groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._desk.await_heartbeat(group.id, member.id, now)
                    if member.state is MemberState.UNREVOKED:
                        self._desk.await_revocation(group.id, member, now)
        return Decision(None)

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Do what is due: put out a member that is late, or resolve a group's regular expressions."""
        _, group_id, what, member_id = key
        desk = self._desk
        group = desk.shelf.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            desk.matching.pop(group_id, None)
            return Decision(None)
        if what == "regex":
            return Decision(None, tuple(resolve(desk, group, now)))
        member = group.members.get(member_id)
        if member is None or not _is_late(member, what):
            return Decision(None)
        return Decision(None, tuple(fence(desk, group, [member], now)))


def _is_late(member: Member, what: str) -> bool:
    """Whether a member is still in what it had a time for."""
    if what == "rebalance":
        return member.state is MemberState.UNREVOKED
    return what == "session" or member.classic is not None


def _answer(answer: Answer) -> Decision[None]:
    return Decision(None, (), (answer,))
