"""LeaveGroup: members give up their seats, or an administrator clears those of static ones."""

from ottla.groups.classic.draft import Draft
from ottla.groups.classic.group import Phase
from ottla.groups.classic.rebalance import complete_if_all_joined, prepare
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_BATCH_SINCE = 3

Leaver = LeaveGroupRequest.MemberIdentity
Outcome = LeaveGroupResponse.MemberResponse


def leavers(request: LeaveGroupRequest, version: int) -> list[Leaver]:
    """Return who is to leave; before version 3 it was one member."""
    return request.members if version >= _BATCH_SINCE else [Leaver(member_id=request.member_id)]


def outcome(leaver: Leaver, code: ErrorCode = ErrorCode.NONE) -> Outcome:
    """Return what became of one who was to leave."""
    return Outcome(member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=code)


def leave_response(outcomes: list[Outcome], version: int) -> LeaveGroupResponse:
    """Return the answer, which before version 3 has room for one error."""
    if version >= _BATCH_SINCE:
        return LeaveGroupResponse(members=outcomes)
    return LeaveGroupResponse(error_code=outcomes[0].error_code)


def leave(draft: Draft, leaving: list[Leaver]) -> list[Outcome]:
    """Let members go, and call the others together if any went."""
    group = draft.group
    outcomes = []
    for each in leaving:
        try:
            _let_go(draft, each)
            outcomes.append(outcome(each))
        except BrokerError as error:
            outcomes.append(outcome(each, error.code))
    if any(each.error_code == ErrorCode.NONE for each in outcomes):
        if group.phase in (Phase.STABLE, Phase.COMPLETING):
            prepare(draft)
        else:
            complete_if_all_joined(draft)
    return outcomes


def _let_go(draft: Draft, leaver: Leaver) -> None:
    group, instance_id = draft.group, leaver.group_instance_id
    member_id = leaver.member_id
    if not member_id:
        # An administrator knows the instance, not the member id it has at the moment.
        holder = None if instance_id is None else group.instances.get(instance_id)
        if holder is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id = holder
    elif member_id not in group.pending:
        group.check_member(member_id, instance_id)
    draft.drop(member_id)
