"""Members of a consumer group that still speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Y1  Nobody leads and nobody is waited for: a join is answered at once with the member's epoch as its generation, and a
    sync with what the coordinator has assigned.
Y2  A member learns by its heartbeat that it shall join again: when there is a new target, when it has to give something
    up, and when what it waited for is free.
"""

from dataclasses import replace

from ottla.groups.classic.leaving import leave_response, leavers, outcome
from ottla.groups.classic.member import PROTOCOLS_MAX, protocols_of
from ottla.groups.consumer import migration
from ottla.groups.consumer.departure import fence
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.embedded import read_subscription, write_assignment
from ottla.groups.consumer.fencing import check_room, static_holder
from ottla.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.groups.consumer.member import ClassicTraits, Member, MemberState
from ottla.groups.consumer.regex import RegexChange
from ottla.groups.consumer.succession import take_over
from ottla.groups.consumer.turn import Turn
from ottla.groups.member_limits import admit, check_names
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.uuid import uuid_text

_ID_REQUIRED_SINCE = 4
_ClassicProtocol = ClassicTraits.ClassicProtocol


class IdRequired(Exception):
    """A newcomer shall ask again, with the member id it is given."""

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.member_id = member_id


def join(
    desk: Desk, request: JoinGroupRequest, version: int, client: Client, now: int
) -> tuple[JoinGroupResponse, list[KeyedRecord]]:
    """Let a classic member into a consumer group, or into its next epoch."""
    _check_session(desk, request)
    group = desk.find(request.group_id)
    if desk.shelf.values["group.consumer.migration.policy"].lower() == "disabled":
        message = (
            f"Cannot join the consumer group {group.id} with the classic protocol because the group migration is "
            "disabled."
        )
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    member_id = request.member_id or uuid_text(desk.shelf.unique())
    check_room(group, member_id, desk.size_max)
    _check_protocols(group, member_id, request)
    if version >= _ID_REQUIRED_SINCE and not request.member_id and request.group_instance_id is None:
        raise IdRequired(member_id)
    out: list[KeyedRecord] = []
    wish = _subscription(request)
    check_names("The subscription", wish.topics)
    holder = group.static_member(request.group_instance_id)
    before = _member(group, request, member_id, holder, out)
    after = _updated(before, request, wish, client)
    admit(desk.shelf, after.size_bytes - before.size_bytes, now)
    turn = Turn(desk, group, now, out)
    renamed, change = turn.subscribe(before, after)
    news = renamed or change is not RegexChange.NONE
    epoch, homogeneous = turn.enter_epoch(before, after, news=news)
    owned = {
        facts.id: topic.partitions
        for topic in wish.owned_partitions
        if (facts := desk.shelf.topics.find(topic.topic)) is not None
    }
    downgrades = holder is not None and migration.may_downgrade_by(desk, group, holder)
    if downgrades:
        # With a stale target everybody is called together anyway.
        is_stale = group.assignment_epoch < epoch
        if not is_stale:
            target = group.target(after)
            after = turn.reconcile(after, group.assignment_epoch, target, owned, resubscribed=news)
        out += migration.downgrade(desk, group, now, joining=after, rebalance=is_stale)
    else:
        target_epoch, target = turn.assign(before, after, epoch, homogeneous)
        after = turn.reconcile(after, target_epoch, target, owned, resubscribed=news)
        desk.await_heartbeat(group.id, after.id, now, request.session_timeout_ms)
        desk.await_sync(group.id, after.id, now, after.rebalance_timeout_ms)
    desk.has_joined(group.id, after.id, out)
    response = JoinGroupResponse(
        member_id=after.id,
        generation_id=after.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )
    return response, out


def sync(desk: Desk, request: SyncGroupRequest, now: int) -> SyncGroupResponse:
    """Return what the coordinator has assigned to a classic member."""
    group = desk.find(request.group_id)
    member, traits = _classic(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    protocol = traits.supported_protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        protocol.name,
    ):
        message = f"Member {member.id} joined with the protocol {protocol.name} of type {PROTOCOL_TYPE}."
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    # One that gives up partitions has already joined again; it is called once more when it is done, if need be.
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
        desk.await_join(group.id, member, now)
        message = f"A new rebalance is triggered in group {group.id} and member {member.id} should rejoin to catch up."
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS, message)
    desk.cancel(group.id, member.id, "sync")
    desk.await_heartbeat(group.id, member.id, now, traits.session_timeout_ms)
    assigned = {topic: frozenset(parts) for topic, parts in member.assigned.items()}
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(assigned, desk.shelf.topics, protocol.metadata),
    )


def heartbeat(desk: Desk, request: HeartbeatRequest, now: int) -> HeartbeatResponse:
    """Hear from a classic member, and tell it whether it shall join again."""
    group = desk.find(request.group_id)
    member, traits = _classic(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    desk.await_heartbeat(group.id, member.id, now, traits.session_timeout_ms)
    if (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED
        or (member.state is MemberState.UNRELEASED and not group.waits_for_others(member))
    ):
        desk.await_join(group.id, member, now)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave(desk: Desk, request: LeaveGroupRequest, version: int, now: int) -> Decision[LeaveGroupResponse]:
    """Let members go, whatever they speak; an administrator may name static ones by their instance id alone."""
    group = desk.find(request.group_id)
    leaving: dict[str, Member] = {}
    outcomes = []
    for each in leavers(request, version):
        try:
            if each.group_instance_id is None:
                member = group.member(each.member_id)
            else:
                member = static_holder(group, each.group_instance_id, each.member_id or None)
        except BrokerError as error:
            outcomes.append(outcome(each, error.code))
        else:
            leaving[member.id] = member
            outcomes.append(outcome(each))
    out = fence(desk, group, list(leaving.values()), now)
    return Decision(leave_response(outcomes, version), tuple(out), any_length=True)


def _check_session(desk: Desk, request: JoinGroupRequest) -> None:
    values = desk.shelf.values
    least, most = values["group.min.session.timeout.ms"], values["group.max.session.timeout.ms"]
    if not least <= request.session_timeout_ms <= most:
        raise BrokerError(ErrorCode.INVALID_SESSION_TIMEOUT)


def _check_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    names = [protocol.name for protocol in request.protocols]
    # Whoever speaks the classic protocol has one that all the others of its kind have too.
    shared = any(group.classic_protocols.get(name, 0) == group.classic_count for name in names)
    if request.protocol_type != PROTOCOL_TYPE or not shared or len(names) > PROTOCOLS_MAX:
        message = f"Member {member_id}'s protocols are not supported."
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)


def _check_generation(member: Member, generation: int) -> None:
    if member.epoch != generation:
        message = (
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} "
            f"of member {member.id}."
        )
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION, message)


def _classic(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[Member, ClassicTraits]:
    member = group.member(member_id) if instance_id is None else static_holder(group, instance_id, member_id)
    if member.classic is None:
        message = f"Member {member.id} does not use the classic protocol."
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member, member.classic


def _member(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    member_id: str,
    holder: Member | None,
    out: list[KeyedRecord],
) -> Member:
    if request.group_instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if request.member_id:
        return static_holder(group, request.group_instance_id, member_id)
    return Member(member_id) if holder is None else take_over(group, holder, member_id, out)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _updated(
    member: Member, request: JoinGroupRequest, wish: ConsumerProtocolSubscription, client: Client
) -> Member:
    protocols = [_ClassicProtocol(name=name, metadata=data) for name, data in protocols_of(request)]
    # Version 0 knew one timeout for both.
    patience_ms = (
        request.session_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
    )
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=wish.rack_id or member.rack_id,
        rebalance_timeout_ms=patience_ms,
        topics=frozenset(wish.topics),
        regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicTraits(session_timeout_ms=request.session_timeout_ms, supported_protocols=protocols),
    )
