"""Classic groups of one partition of `__consumer_offsets`: their commands, their record, their timers.

L1  A command works on a draft. It takes effect at once when there is nothing to record; else with its record, which the
    host hands to `apply` as the very object it was given. If the journal refuses it, nothing has happened.
L2  A record that is not of a draft is one of an earlier leader, or another protocol's: the group is what it says.
L3  JoinGroup and SyncGroup are answered by `Answer`s, in this decision or a later one, each token once.
L4  What the members of all groups of a broker hold is bounded (`member_budget.py`). Whoever would exceed it is answered
    COORDINATOR_NOT_AVAILABLE: it is not its group that is too large, and it may succeed later, so it tries again.
"""

from ottla.groups.classic import joining, leaving, rebalance, syncing
from ottla.groups.classic.answers import dismissals, refused_join, refused_sync
from ottla.groups.classic.draft import Draft
from ottla.groups.classic.group import ClassicGroup, Phase
from ottla.groups.classic.member import PROTOCOLS_MAX, Waiting, client_bytes, text_bytes
from ottla.groups.classic.records import first_record, group_of
from ottla.groups.group import Group, Kind
from ottla.groups.shelf import Shelf, TimerKey
from ottla.replicated.decision import Decision, Reply
from ottla.replicated.keyed import Answer, Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.records.classic_group import GroupMetadataKey, GroupMetadataValue


class ClassicGroups:
    """All classic groups of a partition."""

    __slots__ = ("_drafts", "_shelf")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        # By group: the draft whose record is being appended.
        self._drafts: dict[str, Draft] = {}

    # Commands

    def join(
        self, request: JoinGroupRequest, version: int, client: Client, token: int, now: int
    ) -> Decision[None]:
        """Serve JoinGroup, versions 0 to 9; answered by an `Answer(token, JoinGroupResponse)`."""
        waiting = Waiting(token, version)
        values = self._shelf.values
        found = self._shelf.groups.get(request.group_id)
        if not request.group_id:
            return _answer(refused_join(waiting, ErrorCode.INVALID_GROUP_ID, request.member_id))
        if not (
            values["group.min.session.timeout.ms"]
            <= request.session_timeout_ms
            <= values["group.max.session.timeout.ms"]
        ):
            return _answer(refused_join(waiting, ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        if not self._shelf.tally.members.admits(
            _bytes_more(request, version, client, found), now
        ):
            return _answer(refused_join(waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
        if len(request.protocols) > PROTOCOLS_MAX:
            return _answer(refused_join(waiting, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        if isinstance(found, ClassicGroup):
            draft = self._draft(found, now)
            joining.join(draft, request, client, waiting, self._shelf.unique())
            return self._decide(draft, None)
        # A group that others left empty is made over to the classic protocol.
        if found is not None and (found.kind is Kind.SHARE or found.state != Phase.EMPTY.value):
            return _answer(refused_join(waiting, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        if request.member_id:
            return _answer(refused_join(waiting, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        draft = self._draft(ClassicGroup(request.group_id, since_ms=now), now)
        joining.join(draft, request, client, waiting, self._shelf.unique())
        draft.records = [] if found is None else found.tombstones()
        draft.record(first_record(ClassicGroup(request.group_id, since_ms=now)))
        return self._decide(draft, None)

    def sync(self, request: SyncGroupRequest, version: int, token: int, now: int) -> Decision[None]:
        """Serve SyncGroup, versions 0 to 5; answered by an `Answer(token, SyncGroupResponse)`."""
        waiting = Waiting(token, version)
        if not request.group_id:
            return _answer(refused_sync(waiting, ErrorCode.INVALID_GROUP_ID))
        group = self._find(request.group_id)
        if group is None:
            return _answer(refused_sync(waiting, ErrorCode.UNKNOWN_MEMBER_ID))
        if not self._shelf.tally.members.admits(sum(len(each.assignment) for each in request.assignments), now):
            return _answer(refused_sync(waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        draft = self._draft(group, now)
        if syncing.sync(draft, request, waiting):
            self._shelf.tally.rebalances[Kind.CLASSIC] += 1
        return self._decide(draft, None)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> Decision[HeartbeatResponse]:
        """Serve Heartbeat, versions 0 to 4."""
        return Decision(HeartbeatResponse(error_code=self._heartbeat(request, now)))

    def _heartbeat(self, request: HeartbeatRequest, now: int) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._find(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            group.check_member(request.member_id, request.group_instance_id)
        except BrokerError as error:
            return error.code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.touch(group, request.member_id, now)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.phase is Phase.PREPARING else ErrorCode.NONE

    def leave(self, request: LeaveGroupRequest, version: int, now: int) -> Decision[LeaveGroupResponse]:
        """Serve LeaveGroup, versions 0 to 5."""
        if not request.group_id:
            return Decision(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        leavers = leaving.leavers(request, version)
        group = self._find(request.group_id)
        if group is None:
            unknown = [leaving.outcome(each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leavers]
            return Decision(leaving.leave_response(unknown, version))
        draft = self._draft(group, now)
        outcomes = leaving.leave(draft, leavers)
        return self._decide(draft, leaving.leave_response(outcomes, version))

    def touch(self, group: ClassicGroup, member_id: str, now: int) -> None:
        """Note that a member was heard from."""
        member = group.members.get(member_id)
        if member is not None:
            key = ("classic", group.id, "heartbeat", member_id)
            self._shelf.timers.set(key, now + member.session_timeout_ms)

    # The log

    def apply(self, record: KeyedRecord) -> None:
        """Take in the record of a group."""
        assert isinstance(record.key, GroupMetadataKey)
        group_id = record.key.group
        draft = self._drafts.pop(group_id, None)
        if draft is not None and draft.records[-1] is record:
            self._put_in_place(draft)
            return
        self._remove(group_id)
        if record.value is None:
            return
        assert isinstance(record.value, GroupMetadataValue)
        group = group_of(group_id, record.value)
        self._shelf.groups[group_id] = group
        # Right for a record that another protocol has just written; `lead` sets them anew for one that was replayed.
        self._await_heartbeats(group, group.since_ms or 0)

    def add_simple(self, group_id: str) -> None:
        """Let there be a group that merely holds offsets, as a commit without members makes it."""
        self._shelf.groups[group_id] = ClassicGroup(group_id)

    def lead(self, now: int) -> None:
        """Begin to lead: all members have a whole session to be heard from, and too large a group rebalances."""
        for group in list(self._shelf.groups.values()):
            if isinstance(group, ClassicGroup):
                self._await_heartbeats(group, now)
                if len(group.members) > self._shelf.values["group.max.size"]:
                    self._shelf.timers.set(("classic", group.id, "rebalance", ""), now)

    # Time

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Do what is due.

        `heartbeat`: a member was silent for a session. `join`, `sync`: time is up for who has not. `rebalance`: the
        group is called together, as another protocol asks that has just made it a classic one.
        """
        _, group_id, what, member_id = key
        group = self._find(group_id)
        if group is None:
            return Decision(None)
        draft = self._draft(group, now)
        if what == "heartbeat":
            member = group.members.get(member_id)
            if member_id in group.pending or (member is not None and not member.waits):
                rebalance.lose(draft, member_id)
        elif what == "join":
            rebalance.join_is_over(draft)
        elif what == "sync":
            rebalance.sync_is_over(draft)
        elif group.phase in (Phase.STABLE, Phase.COMPLETING):
            rebalance.prepare(draft)
        return self._decide(draft, None)

    # Drafts

    def _find(self, group_id: str) -> ClassicGroup | None:
        group = self._shelf.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _draft(self, group: ClassicGroup, now: int) -> Draft:
        self._drafts.pop(group.id, None)
        return Draft(group.copy(), self._shelf.values, now)

    def _decide(self, draft: Draft, reply: Reply) -> Decision[Reply]:
        if draft.records:
            self._drafts[draft.group.id] = draft
        else:
            self._put_in_place(draft)
        return Decision(reply, tuple(draft.records), tuple(draft.answers))

    def _put_in_place(self, draft: Draft) -> None:
        self._shelf.groups[draft.group.id] = draft.group
        for key, deadline_ms in draft.timers.items():
            if deadline_ms is None:
                self._shelf.timers.cancel(key)
            else:
                self._shelf.timers.set(key, deadline_ms)

    def _remove(self, group_id: str) -> None:
        group = self._find(group_id)
        if group is not None:
            del self._shelf.groups[group_id]
            for key in group.timer_keys():
                self._shelf.timers.cancel(key)

    def _await_heartbeats(self, group: ClassicGroup, now: int) -> None:
        for member in group.members.values():
            self.touch(group, member.id, now)


def _bytes_more(request: JoinGroupRequest, version: int, client: Client, found: Group | None) -> int:
    """Return by how much a join makes what its member holds grow."""
    if joining.only_asks_for_id(request, version):
        return text_bytes(client.client_id)  # with which the id begins
    member = found.members.get(request.member_id) if isinstance(found, ClassicGroup) else None
    names = request.member_id or request.group_instance_id or client.client_id, request.group_instance_id or ""
    size_bytes = joining.bytes_of(request) + sum(map(text_bytes, names)) + client_bytes(client)
    return size_bytes - (0 if member is None else member.size_bytes)


def _answer(answer: Answer) -> Decision[None]:
    return Decision(None, (), (answer,))


def all_dismissed(group: ClassicGroup, code: ErrorCode) -> list[Answer]:
    """Answer everyone who waits in a group with an error, as when it becomes one of another protocol."""
    return [answer for member in group.members.values() for answer in dismissals(member, code, member.id)]
