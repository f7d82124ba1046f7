"""ConsumerGroupHeartbeat: the one request by which a member joins, reports, stays and leaves.

B1  A heartbeat takes three steps: what the member wants, what it shall have, what it has. One that changes nothing
    takes none of them, and writes nothing.
B2  The answer holds the member's assignment when it joins, when it says everything, and when it has changed.
B3  What a member says of itself is bounded (`member_limits.py`), and what follows from that for all the others of its
    group is one step, however long its records are.
"""

from dataclasses import replace

from ottla.groups.consumer import migration, records
from ottla.groups.consumer.departure import fence
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.fencing import check_epoch, check_released, check_room, static_holder
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import LEAVES_FOR_NOW, Holding, Member
from ottla.groups.consumer.reconciliation import Owned
from ottla.groups.consumer.regex import RegexChange
from ottla.groups.consumer.request import is_full
from ottla.groups.consumer.succession import take_over
from ottla.groups.consumer.turn import Turn
from ottla.groups.group import Kind
from ottla.groups.member_limits import admit
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.uuid import uuid_text

Assignment = ConsumerGroupHeartbeatResponse.Assignment
TopicPartitions = ConsumerGroupHeartbeatResponse.TopicPartitions
Response = ConsumerGroupHeartbeatResponse


def heartbeat(
    desk: Desk, request: ConsumerGroupHeartbeatRequest, client: Client, now: int
) -> Decision[Response]:
    """Let a member in, or hear from it; BrokerError says why not."""
    joins = request.member_epoch == 0
    out: list[KeyedRecord] = []
    after_commit: list[Effect] = []
    group = (
        _group(desk, request.group_id, now, out, after_commit) if joins else _found(desk, request.group_id)
    )
    check_room(group, request.member_id, desk.size_max)
    owned = _owned(request)
    before = _member(group, request, request.member_id or uuid_text(desk.shelf.unique()), owned, out)
    after = _updated(before, request, client)
    if after.topics is not before.topics:
        admit(desk.shelf, after.size_bytes - before.size_bytes, now)
    turn = Turn(desk, group, now, out)
    renamed, change = turn.subscribe(before, after)
    news = renamed or change is RegexChange.RESOLVED
    epoch, homogeneous = turn.enter_epoch(before, after, news=news)
    target_epoch, target = turn.assign(before, after, epoch, homogeneous)
    resubscribed = renamed or change is not RegexChange.NONE
    after = turn.reconcile(after, target_epoch, target, owned, resubscribed=resubscribed)
    desk.await_heartbeat(group.id, after.id, now)
    response = Response(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=desk.shelf.config(group.id, "consumer.heartbeat.interval.ms"),
    )
    if joins or after.assigned != before.assigned or is_full(request):
        response.assignment = _assignment(after.assigned)
    return Decision(response, tuple(out), tuple(after_commit), any_length=True)


def leave(desk: Desk, request: ConsumerGroupHeartbeatRequest, now: int) -> Decision[Response]:
    """Let a member go: for good with epoch -1; a static one for now with -2, and it keeps what it has."""
    group = desk.find(request.group_id)
    member_id, epoch = request.member_id, request.member_epoch
    if request.instance_id is None:
        member = group.member(member_id)
    else:
        member = static_holder(group, request.instance_id, member_id)
        if epoch == LEAVES_FOR_NOW:
            # The epochs of its partitions begin anew, for whoever comes in its place begins at 0.
            assigned = {topic: dict.fromkeys(parts, 0) for topic, parts in member.assigned.items()}
            away = replace(member, epoch=LEAVES_FOR_NOW, assigned=assigned, revoking={})
            reply = Response(member_id=member.id, member_epoch=LEAVES_FOR_NOW)
            return Decision(reply, (records.current(group.id, away),))
    reply = Response(member_id=member_id, member_epoch=epoch)
    return Decision(reply, tuple(fence(desk, group, [member], now)), any_length=True)


def _found(desk: Desk, group_id: str) -> ConsumerGroup:
    if group_id not in desk.shelf.groups:
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    return desk.find(group_id)


def _group(
    desk: Desk, group_id: str, now: int, out: list[KeyedRecord], after_commit: list[Effect]
) -> ConsumerGroup:
    """Return the group to join; one that is not there, or that classic members have left or can share, is made."""
    found = desk.shelf.groups.get(group_id)
    if found is None:
        return ConsumerGroup(group_id)
    if found.kind is not Kind.CLASSIC:
        return desk.find(group_id)
    if found.state == "Empty":
        out += found.tombstones()
        return ConsumerGroup(group_id)
    return migration.upgrade(desk, found, now, out, after_commit)


def _member(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Owned,
    out: list[KeyedRecord],
) -> Member:
    """Return the member that speaks, which is new when it joins; a static one may take another's place."""
    epoch, instance_id = request.member_epoch, request.instance_id
    if instance_id is None:
        member = group.members.get(member_id) or Member(member_id) if epoch == 0 else group.member(member_id)
        check_epoch(member, epoch, owned)
        return member
    if epoch != 0:
        holder = static_holder(group, instance_id, member_id)
        check_epoch(holder, epoch, owned)
        return holder
    holder_or_none = group.static_member(instance_id)
    if holder_or_none is None:
        return group.members.get(member_id) or Member(member_id)
    if holder_or_none.classic is None:
        check_released(holder_or_none, member_id)
    return take_over(group, holder_or_none, member_id, out)


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with what the request says anew; itself when that is nothing."""
    names, patience_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    said = (
        ("instance_id", request.instance_id),
        ("rack_id", request.rack_id),
        ("rebalance_timeout_ms", None if patience_ms == -1 else patience_ms),
        ("assignor", request.server_assignor),
        ("topics", None if names is None else frozenset(names)),
        ("regex", request.subscribed_topic_regex),
        ("client_id", client.client_id),
        ("client_host", client.host),
    )
    changes: dict[str, object] = {
        name: value for name, value in said if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        changes["classic"] = None
    return replace(member, **changes) if changes else member  # type: ignore[arg-type]


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, list[int]] = {}
    for topic in request.topic_partitions:
        owned[topic.topic_id] = [*owned.get(topic.topic_id, ()), *topic.partitions]
    return owned


def _assignment(assigned: Holding) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )
