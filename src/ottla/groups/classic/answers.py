"""The answers to JoinGroup and SyncGroup, at whatever version they were asked."""

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member, Waiting
from ottla.replicated.keyed import Answer
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

# From this version on an answer can say that there is no protocol.
_NULL_PROTOCOL_SINCE = 7


def refused_join(waiting: Waiting, code: ErrorCode, member_id: str = "") -> Answer:
    """Refuse a join; `member_id` is who the client is, or shall be when it asks again."""
    response = JoinGroupResponse(
        error_code=code,
        member_id=member_id,
        protocol_name=None if waiting.version >= _NULL_PROTOCOL_SINCE else "",
    )
    return Answer(waiting.token, response)


def joined(
    waiting: Waiting,
    group: ClassicGroup,
    member_id: str,
    *,
    leader: str | None = None,
    with_members: bool = False,
    skip_assignment: bool = False,
) -> Answer:
    """Tell a member which generation it is in; `leader` is whom to name as such, if not the one who is."""
    name = group.protocol_name
    members: list[JoinGroupResponse.JoinGroupResponseMember] = []
    if with_members:
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=each.id, group_instance_id=each.instance_id, metadata=each.metadata(name)
            )
            for each in group.members.values()
        ]
    response = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=name if name is not None or waiting.version >= _NULL_PROTOCOL_SINCE else "",
        leader=leader or group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )
    return Answer(waiting.token, response)


def refused_sync(waiting: Waiting, code: ErrorCode) -> Answer:
    """Refuse a sync."""
    return Answer(waiting.token, SyncGroupResponse(error_code=code))


def synced(waiting: Waiting, group: ClassicGroup, assignment: bytes) -> Answer:
    """Give a member its assignment."""
    response = SyncGroupResponse(
        protocol_type=group.protocol_type or None, protocol_name=group.protocol_name, assignment=assignment
    )
    return Answer(waiting.token, response)


def dismissals(member: Member, code: ErrorCode, member_id: str = "") -> list[Answer]:
    """Answer whatever a member still waits for with an error."""
    found = []
    if member.join is not None:
        found.append(refused_join(member.join, code, member_id))
    if member.sync is not None:
        found.append(refused_sync(member.sync, code))
    return found
