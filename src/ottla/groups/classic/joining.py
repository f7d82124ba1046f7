"""JoinGroup: who may come in, and what a join brings about.

J1  A dynamic member gets its id before it joins (since version 4), so that a client which retries does not leave a
    ghost for each try behind.
J2  A static member that comes without an id takes the seat of its earlier self, who is fenced. If the group is stable
    and would choose the same protocol, nobody else has to notice.
J3  A stable group is called together again only by its leader, by a member that says something new of itself,
    or by someone new.
J4  What the members of a group say of themselves stays within METADATA_BYTES_MAX, names of protocols and all: a join
    that brings more than METADATA_BYTES_FREE is refused beyond it, as where the group has too many members. What the
    members of all groups hold is bounded by `groups.py` (L4). A member names at most PROTOCOLS_MAX protocols.
"""

import uuid

from ottla.groups.classic.answers import dismissals, joined, refused_join
from ottla.groups.classic.draft import Draft
from ottla.groups.classic.group import Phase
from ottla.groups.classic.member import Member, Waiting, protocols_bytes, protocols_of
from ottla.groups.classic.rebalance import complete_if_all_joined, prepare, rebalance_or_complete
from ottla.groups.classic.records import group_record
from ottla.replicated.keyed import Client
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest

# How long a member that never heard of a generation may wait for its first: it cannot send heartbeats yet.
_FIRST_JOIN_MS = 5 * 60 * 1000
METADATA_BYTES_MAX = 32 << 20
METADATA_BYTES_FREE = 16 << 10
_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9


def join(draft: Draft, request: JoinGroupRequest, client: Client, waiting: Waiting, chance: bytes) -> None:
    """Let one join; `chance` are 16 random bytes for its member id, should it need one."""
    group = draft.group
    member_id = request.member_id
    if not _has_room(draft, member_id):
        draft.drop(member_id)
        draft.say(refused_join(waiting, ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif not _has_room_for_metadata(draft, request):
        draft.say(refused_join(waiting, ErrorCode.GROUP_MAX_SIZE_REACHED, member_id))
    elif not group.supports(request.protocol_type, [each.name for each in request.protocols]):
        draft.say(refused_join(waiting, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
    elif not member_id:
        _join_anew(draft, request, client, waiting, chance)
    elif member_id in group.pending and request.group_instance_id is None:
        _add(draft, request, client, waiting, member_id)
    else:
        _join_again(draft, request, waiting)


def bytes_of(request: JoinGroupRequest) -> int:
    """Return how many bytes are kept of the protocols of a request."""
    return protocols_bytes((each.name, each.metadata) for each in request.protocols)


def only_asks_for_id(request: JoinGroupRequest, version: int) -> bool:
    """Say whether a join without an id only brings one about (J1): nothing is kept but that."""
    return not request.member_id and request.group_instance_id is None and version >= _ID_REQUIRED_SINCE


def _has_room(draft: Draft, member_id: str) -> bool:
    group, size_max = draft.group, draft.values["group.max.size"]
    if group.phase is Phase.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.phase is Phase.PREPARING:
        # Those who joined count, not those who are in: the limit may have been lowered, and the last to come are out.
        return (member is not None and member.join is not None) or group.joining < size_max
    return member is not None or len(group.members) < size_max


def _has_room_for_metadata(draft: Draft, request: JoinGroupRequest) -> bool:
    size_bytes = bytes_of(request)
    if size_bytes <= METADATA_BYTES_FREE:
        return True
    others = (member for member in draft.group.members.values() if member.id != request.member_id)
    held = sum(protocols_bytes(member.protocols) for member in others)
    return size_bytes + held <= METADATA_BYTES_MAX


def _join_anew(
    draft: Draft, request: JoinGroupRequest, client: Client, waiting: Waiting, chance: bytes
) -> None:
    group, instance_id = draft.group, request.group_instance_id
    prefix = client.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{uuid.UUID(bytes=chance, version=4)}"
    if instance_id is not None and instance_id in group.instances:
        _replace_static(draft, request, waiting, member_id)
    elif only_asks_for_id(request, waiting.version):
        group.pending.add(member_id)
        draft.set_timer("heartbeat", request.session_timeout_ms, member_id)
        draft.say(refused_join(waiting, ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add(draft, request, client, waiting, member_id)


def _add(draft: Draft, request: JoinGroupRequest, client: Client, waiting: Waiting, member_id: str) -> None:
    group = draft.group
    if group.first_wait_ms is not None:
        group.has_newcomer = True
    if not group.members:
        group.protocol_type = request.protocol_type
    draft.put(
        Member(
            member_id,
            request.group_instance_id,
            client,
            rebalance_timeout_ms(request, waiting.version),
            request.session_timeout_ms,
            protocols_of(request),
            is_new=True,
            join=waiting,
        )
    )
    draft.set_timer("heartbeat", _FIRST_JOIN_MS, member_id)
    rebalance_or_complete(draft)


def _join_again(draft: Draft, request: JoinGroupRequest, waiting: Waiting) -> None:
    group = draft.group
    try:
        group.check_member(request.member_id, request.group_instance_id)
    except BrokerError as error:
        draft.say(refused_join(waiting, error.code, request.member_id))
        return
    member = group.members[request.member_id]
    is_leader = group.leader == member.id
    same = member.protocols == protocols_of(request)
    if group.phase is Phase.COMPLETING and same:
        # The answer to its first join may have been lost.
        draft.say(joined(waiting, group, member.id, with_members=is_leader))
    elif group.phase is Phase.STABLE and same and not is_leader:
        draft.say(joined(waiting, group, member.id))
    else:
        draft.put(_updated(member, request, waiting))
        rebalance_or_complete(draft)


def _replace_static(draft: Draft, request: JoinGroupRequest, waiting: Waiting, member_id: str) -> None:
    assert request.group_instance_id is not None
    group = draft.group
    old = group.members[group.instances[request.group_instance_id]]
    old_leader = group.leader
    draft.say(*dismissals(old, ErrorCode.FENCED_INSTANCE_ID, old.id))
    draft.cancel_timer("heartbeat", old.id)
    new = _updated(old._replace(id=member_id, join=None, sync=None, is_new=False), request, waiting)
    group.replace(old, new)
    draft.set_timer("heartbeat", old.session_timeout_ms, member_id)
    if group.phase is Phase.STABLE and group.choose_protocol() == group.protocol_name:
        is_leader = group.leader == member_id
        if waiting.version >= _SKIP_ASSIGNMENT_SINCE:
            answer = joined(waiting, group, member_id, with_members=is_leader, skip_assignment=is_leader)
        else:
            # Whoever believes to lead would compute an assignment that a stable group does not take, so an old
            # client is told of a leader that is no more.
            answer = joined(waiting, group, member_id, leader=old_leader)
        draft.say(answer)
        group.put(new._replace(join=None))
        draft.record(group_record(group, {each.id: each.assignment for each in group.members.values()}))
    elif group.phase in (Phase.STABLE, Phase.COMPLETING):
        # The leader may be about to assign partitions to a member id that is no more.
        prepare(draft)
    else:
        complete_if_all_joined(draft)


def _updated(member: Member, request: JoinGroupRequest, waiting: Waiting) -> Member:
    return member._replace(
        protocols=protocols_of(request),
        rebalance_timeout_ms=rebalance_timeout_ms(request, waiting.version),
        session_timeout_ms=request.session_timeout_ms,
        join=waiting,
    )


def rebalance_timeout_ms(request: JoinGroupRequest, version: int) -> int:
    """Return how long a member lets a rebalance take; version 0 knew but one timeout."""
    return request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms
