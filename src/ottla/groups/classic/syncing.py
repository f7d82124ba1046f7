"""SyncGroup: the leader hands in everyone's assignment, and the members fetch theirs.

Y1  A generation is recorded with its assignment, once; nobody learns its share before that record is committed.
"""

from ottla.groups.classic.answers import refused_sync, synced
from ottla.groups.classic.draft import Draft
from ottla.groups.classic.group import ClassicGroup, Phase
from ottla.groups.classic.member import Waiting
from ottla.groups.classic.records import group_record
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest


def sync(draft: Draft, request: SyncGroupRequest, waiting: Waiting) -> bool:
    """Give a member its assignment, or let it wait for the leader's; True when it is the leader's, and all have it."""
    group = draft.group
    try:
        _check(group, request)
    except BrokerError as error:
        draft.say(refused_sync(waiting, error.code))
        return False
    member = group.members[request.member_id]
    group.pending_sync.discard(member.id)
    if not group.pending_sync:
        draft.cancel_timer("sync")
    if group.phase is Phase.STABLE:
        draft.say(synced(waiting, group, member.assignment))
        return False
    draft.put(member._replace(sync=waiting))
    if member.id != group.leader:
        return False
    _settle(draft, {each.member_id: each.assignment for each in request.assignments})
    return True


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.phase is Phase.EMPTY:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.phase is Phase.PREPARING:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)


def _settle(draft: Draft, assignments: dict[str, bytes]) -> None:
    group = draft.group
    draft.record(group_record(group, assignments))
    for member in list(group.members.values()):
        assignment = assignments.get(member.id, b"")
        if member.sync is not None:
            draft.say(synced(member.sync, group, assignment))
            # While it waited, its session could run out without notice.
            draft.await_heartbeat(member)
        group.put(member._replace(assignment=assignment, sync=None))
    group.enter(Phase.STABLE, draft.now)
