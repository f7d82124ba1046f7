"""ShareGroupHeartbeat: the one request by which a member joins, reports, stays and leaves.

B1  A heartbeat takes three steps: what the member wants, what it shall have, what it has. One that changes nothing
    takes none of them, and writes nothing.
B2  Only share partitions with durable state are assigned. Those that are wanted and have none are asked for
    (`InitializeState`), and assigned at the first heartbeat after they have it.
B3  The answer holds the member's assignment when it joins, when it says everything, and when it has changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.groups.assignors.spec import Assignment, Subscriber
from ottla.groups.member_limits import admit, check_names, names_bytes
from ottla.groups.share import records
from ottla.groups.share.desk import Desk
from ottla.groups.share.effects import InitializeState
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import JOINS, LEAVES, Member
from ottla.groups.share.progress import Progress, Topic, Topics
from ottla.groups.share.simple import assign
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

Request = ShareGroupHeartbeatRequest
Response = ShareGroupHeartbeatResponse
StateData = InitializeShareGroupStateRequest.InitializeStateData

ANYWHERE = -1  # The leader of the partition will find out where the group begins.


def check(request: Request) -> None:
    """Raise INVALID_REQUEST unless the request makes sense."""
    names = {"MemberId": request.member_id, "GroupId": request.group_id, "RackId": request.rack_id}
    for name, value in names.items():
        if value is not None and not value.strip():
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch < LEAVES:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.member_epoch == JOINS and not request.subscribed_topic_names:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    check_names("SubscribedTopicNames", request.subscribed_topic_names or ())


def heartbeat(desk: Desk, request: Request, client: Client, now: int) -> Decision[Response]:
    """Let a member in, or hear from it; BrokerError says why not. Effect: `InitializeState`."""
    joins = request.member_epoch == JOINS
    group = desk.find_or_new(request.group_id) if joins else desk.find(request.group_id)
    before = _member(desk, group, request)
    after = before.reported(request, client)
    if after.topics is not before.topics:
        admit(desk.shelf, names_bytes(after.topics) - names_bytes(before.topics), now)
    out: list[KeyedRecord] = []
    if after != before:
        out.append(records.subscription(group.id, after))
    news = after.topics != before.topics
    if group.assignment_epoch >= group.epoch:
        news = news or group.lacks_assignment()
    epoch, counts = group.epoch, group.counts
    if news or not group.is_fresh(desk.shelf.topics.version):
        counts = group.counts_with(before, after)
        metadata_hash = desk.digests.of(counts)
        news = news or metadata_hash != group.metadata_hash
        if news:
            epoch += 1
            out.append(records.epoch(group.id, epoch, metadata_hash))
        group.refreshed = desk.shelf.topics.version, epoch
    target_epoch, target = _assign(desk, group, after, epoch, counts, now, out)
    after = _reconcile(desk, group.id, after, target_epoch, target, news, out)
    desk.await_heartbeat(group.id, after.id, now)
    response = Response(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=desk.shelf.config(group.id, "share.heartbeat.interval.ms"),
    )
    if joins or request.subscribed_topic_names is not None or after.assigned != before.assigned:
        response.assignment = _assignment(after.assigned)
    asked = _ask_for_state(desk, group, epoch, counts, now, out)
    return Decision(response, tuple(out), asked, any_length=True)


def leave(desk: Desk, group_id: str, member_id: str) -> Decision[Response]:
    """Let a member go for good."""
    group = desk.find(group_id)
    member = group.member(member_id)
    response = Response(member_id=member_id, member_epoch=LEAVES)
    return Decision(response, tuple(fence(desk, group, member)), any_length=True)


def fence(desk: Desk, group: ShareGroup, member: Member) -> list[KeyedRecord]:
    """Return the records that take a member out of its group; its session ends when they are applied."""
    metadata_hash = desk.digests.of(group.counts_with(member, None))
    return [
        *records.member_gone(group.id, member.id),
        records.epoch(group.id, group.epoch + 1, metadata_hash),
    ]


def initialize_request(
    group_id: str, state_epoch: int, offsets: Mapping[bytes, Mapping[int, int]]
) -> InitializeShareGroupStateRequest:
    """Return the request for the state of share partitions, each to begin at an offset."""
    topics = [
        StateData(
            topic_id=topic_id,
            partitions=[
                StateData.PartitionData(
                    partition=each, state_epoch=state_epoch, start_offset=offsets[topic_id][each]
                )
                for each in sorted(offsets[topic_id])
            ],
        )
        for topic_id in sorted(offsets)
    ]
    return InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def _member(desk: Desk, group: ShareGroup, request: Request) -> Member:
    member = group.members.get(request.member_id)
    size_max = desk.shelf.values["group.share.max.size"]
    if member is None and len(group.members) >= size_max:
        message = f"The share group has reached its maximum capacity of {size_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    if request.member_epoch == JOINS:
        return member or Member(request.member_id)
    member = group.member(request.member_id)
    # The epoch before is as good: the answer that told of the new one may have been lost.
    if request.member_epoch not in {member.epoch, member.previous_epoch}:
        message = f"The member is in epoch {member.epoch}, not {request.member_epoch}: it has to join anew."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return member


def _assign(
    desk: Desk,
    group: ShareGroup,
    after: Member,
    epoch: int,
    counts: Mapping[str, int],
    now: int,
    out: list[KeyedRecord],
) -> tuple[int, Assignment]:
    """Compute the target assignment if it is behind and may be; return its epoch, and the member's part of it."""
    if group.assignment_epoch >= epoch or not _may_assign(desk, group, now):
        return group.assignment_epoch, group.targets.get(after.id, {})
    known: dict[frozenset[str], frozenset[bytes]] = {}
    subscribers = {}
    for member in {**group.members, after.id: after}.values():
        if member.topics not in known:
            known[member.topics] = _topic_ids(desk, member.topics)
        subscribers[member.id] = Subscriber(known[member.topics], group.targets.get(member.id, {}))
    homogeneous = all(count == len(subscribers) for count in counts.values())
    progress = group.progress or Progress()
    partitions = {topic_id: topic.partitions for topic_id, topic in progress.initialized.items()}
    targets = assign(subscribers, partitions, homogeneous)
    for member_id, target in targets.items():
        if target != group.targets.get(member_id):
            out.append(records.target(group.id, member_id, target))
    out.append(records.target_epoch(group.id, epoch, now))
    return epoch, targets[after.id]


def _may_assign(desk: Desk, group: ShareGroup, now: int) -> bool:
    interval_ms: int = desk.shelf.config(group.id, "share.assignment.interval.ms")
    return group.may_assign(interval_ms, now)


def _reconcile(
    desk: Desk,
    group_id: str,
    member: Member,
    epoch: int,
    target: Assignment,
    news: bool,
    out: list[KeyedRecord],
) -> Member:
    """Give the member its target at once: nobody has to give anything up before."""
    if epoch == member.epoch and not news:
        return member
    wanted = _topic_ids(desk, member.topics)
    assigned = {topic_id: frozenset(parts) for topic_id, parts in target.items() if topic_id in wanted}
    after = replace(member, assigned=assigned)
    if epoch != member.epoch:
        after = replace(after, epoch=epoch, previous_epoch=member.epoch)
    if after != member:
        out.append(records.current(group_id, after))
    return after


def _ask_for_state(
    desk: Desk, group: ShareGroup, epoch: int, names: Iterable[str], now: int, out: list[KeyedRecord]
) -> tuple[Effect, ...]:
    """Ask for the state of share partitions that are wanted and have none."""
    progress = group.progress or Progress()
    missing: Topics = {}
    for name in names:
        facts = desk.shelf.topics.find(name)
        if facts is None:
            continue
        known = (
            progress.initialized[facts.id].partitions
            if facts.id in progress.initialized
            else frozenset[int]()
        )
        if facts.id in progress.initializing and desk.is_asking(group.id, facts.id, now):
            known |= progress.initializing[facts.id].partitions
        if len(known) < facts.partitions:
            missing[facts.id] = Topic(facts.name, frozenset(range(facts.partitions)) - known)
    if not missing:
        return ()
    for topic_id in missing:
        desk.asked(group.id, topic_id, now)
    out.append(records.progress(group.id, progress.begun(missing)))
    offsets = {topic_id: dict.fromkeys(topic.partitions, ANYWHERE) for topic_id, topic in missing.items()}
    return (InitializeState(initialize_request(group.id, epoch, offsets)),)


def _topic_ids(desk: Desk, names: Iterable[str]) -> frozenset[bytes]:
    find = desk.shelf.topics.find
    return frozenset(facts.id for name in names if (facts := find(name)) is not None)


def _assignment(assigned: Assignment) -> Response.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )
