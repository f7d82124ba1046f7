"""From a classic group to a consumer group and back, while its members are at work.

V1  An upgrade happens when the first member of the new protocol joins. The old members stay, each with what it was
    assigned, and go on speaking the classic protocol.
V2  A downgrade happens when the last member of the new protocol goes, or is replaced by its classic self. The others
    keep what they should have had, and are called together if that is out of date.
V3  Either way the tombstones of the one group and the records of the other are one atomic step.
"""

from collections.abc import Sequence

from ottla.groups.assignors.spec import Assignment
from ottla.groups.classic import member as classic_member
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.groups import all_dismissed
from ottla.groups.classic.records import group_record
from ottla.groups.consumer import records
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.embedded import read_assignment, read_subscription, write_assignment
from ottla.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.groups.consumer.member import ClassicTraits, Member
from ottla.groups.group import Group
from ottla.replicated.decision import Effect
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError

_POLICY = "group.consumer.migration.policy"
_ClassicProtocol = ClassicTraits.ClassicProtocol


def upgrade(
    desk: Desk, found: Group, now: int, out: list[KeyedRecord], after_commit: list[Effect]
) -> ConsumerGroup:
    """Make a consumer group of a classic one; GROUP_ID_NOT_FOUND says why that can not be."""
    assert isinstance(found, ClassicGroup)
    refusal = f"Cannot upgrade classic group {found.id} to consumer group because "
    if desk.shelf.values[_POLICY].lower() not in ("bidirectional", "upgrade"):
        raise _refused(refusal + "online upgrade is disabled.")
    if found.protocol_type != PROTOCOL_TYPE:
        raise _refused(refusal + "the group does not use the consumer embedded protocol.")
    if len(found.members) > desk.size_max:
        raise _refused(refusal + "the group size exceeds the consumer group maximum size.")
    try:
        group = _consumer_group(desk, found)
    except ProtocolError:
        raise _refused(refusal + "the embedded consumer protocol is malformed.") from None
    after_commit += all_dismissed(found, ErrorCode.REBALANCE_IN_PROGRESS)
    out += found.tombstones()
    out += (records.subscription(group.id, member) for member in group.members.values())
    out.append(records.epoch(group.id, group.epoch, group.metadata_hash))
    out += (records.target(group.id, each, target) for each, target in group.targets.items())
    out.append(records.target_epoch(group.id, group.assignment_epoch, group.assignment_timestamp))
    out += (records.current(group.id, member) for member in group.members.values())
    for member in found.members.values():
        desk.await_heartbeat(group.id, member.id, now, member.session_timeout_ms)
    return group


def may_downgrade(desk: Desk, group: ConsumerGroup, leaving: Sequence[Member]) -> bool:
    """Whether only classic members are left once these have gone, and a classic group may be made of them."""
    left = len(group.members) - len(leaving)
    classic_left = group.classic_count - sum(member.classic is not None for member in leaving)
    return left > 0 and classic_left == left and _downgrades(desk, left)


def may_downgrade_by(desk: Desk, group: ConsumerGroup, replaced: Member) -> bool:
    """Whether only classic members are left once this one is replaced by its classic self."""
    size = len(group.members)
    return replaced.classic is None and group.classic_count == size - 1 and _downgrades(desk, size)


def downgrade(
    desk: Desk,
    group: ConsumerGroup,
    now: int,
    *,
    leaving: Sequence[Member] = (),
    joining: Member | None = None,
    rebalance: bool = True,
) -> list[KeyedRecord]:
    """Return the records that make a classic group of a consumer group, without some and with one who takes over."""
    gone_ids = {member.id for member in leaving}
    replaced = None if joining is None else group.static_member(joining.instance_id)
    members = {member.id: member for member in group.members.values() if member is not replaced}
    ids = [member.id for member in group.members.values()]
    targets: dict[str, Assignment] = dict(group.targets)
    if joining is not None and replaced is not None:
        members[joining.id] = joining
        ids = [joining.id if each == replaced.id else each for each in ids]
        targets[joining.id] = targets.get(replaced.id, {})
    classic = ClassicGroup(group.id, protocol_type=PROTOCOL_TYPE, generation=group.epoch, since_ms=now)
    for member in members.values():
        if member.id not in gone_ids:
            classic.put(_classic_member(member))
    classic.protocol_name = classic.choose_protocol()
    try:
        assignments = {
            member.id: write_assignment(
                targets.get(member.id, {}), desk.shelf.topics, member.metadata(classic.protocol_name)
            )
            for member in classic.members.values()
        }
    except ProtocolError as error:
        raise _refused(f"Cannot downgrade the classic group {group.id}: {error}.") from None
    if rebalance:
        desk.shelf.timers.set(("classic", group.id, "rebalance", ""), now)
    return [*records.group_gone(group.id, ids, group.resolved), group_record(classic, assignments)]


def _downgrades(desk: Desk, size: int) -> bool:
    policy, size_max = desk.shelf.values[_POLICY], desk.shelf.values["group.max.size"]
    return policy.lower() in ("bidirectional", "downgrade") and size <= size_max


def _consumer_group(desk: Desk, found: ClassicGroup) -> ConsumerGroup:
    group = ConsumerGroup(found.id)
    group.epoch = group.assignment_epoch = found.generation
    protocol = found.protocol_name or found.choose_protocol()
    taken: set[tuple[bytes, int]] = set()
    for each in found.members.values():
        target = _assigned(desk, found.id, each.assignment, taken)
        wish = read_subscription(each.metadata(protocol))
        traits = ClassicTraits(
            session_timeout_ms=each.session_timeout_ms,
            supported_protocols=[_ClassicProtocol(name=name, metadata=data) for name, data in each.protocols],
        )
        member = Member(
            each.id,
            epoch=found.generation,
            previous_epoch=found.generation,
            instance_id=each.instance_id,
            rack_id=wish.rack_id or None,
            rebalance_timeout_ms=each.rebalance_timeout_ms,
            client_id=each.client.client_id,
            client_host=each.client.host,
            topics=frozenset(wish.topics),
            assigned={topic: dict.fromkeys(parts, found.generation) for topic, parts in target.items()},
            classic=traits,
        )
        group.targets[each.id] = target
        group.put(member)
    group.metadata_hash = desk.digests.of(group.counts)
    return group


def _assigned(desk: Desk, group_id: str, data: bytes, taken: set[tuple[bytes, int]]) -> Assignment:
    """Return what a classic member was assigned, of partitions that exist and that no other member has taken.

    A client has written it, and the assignors rely on both.
    """
    if not data:
        return {}
    assignment = read_assignment(data)
    if assignment.user_data:
        message = (
            f"Cannot upgrade classic group {group_id} to consumer group because an unsupported custom assignor is in "
            "use. Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
        )
        raise _refused(message)
    found: dict[bytes, frozenset[int]] = {}
    for topic in assignment.assigned_partitions:
        facts = desk.shelf.topics.find(topic.topic)
        if facts is None:
            continue
        places = {(facts.id, each) for each in topic.partitions if 0 <= each < facts.partitions} - taken
        taken |= places
        if places:
            found[facts.id] = found.get(facts.id, frozenset()).union(each for _, each in places)
    return found


def _classic_member(member: Member) -> classic_member.Member:
    assert member.classic is not None, "whoever stays speaks the classic protocol"
    return classic_member.Member(
        member.id,
        member.instance_id,
        Client(member.client_id, member.client_host),
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        tuple((each.name, each.metadata) for each in member.classic.supported_protocols),
    )


def _refused(message: str) -> BrokerError:
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, message)
