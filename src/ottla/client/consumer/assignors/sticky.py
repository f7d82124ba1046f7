"""The sticky assignors: as balanced as possible, and with as few changes as possible.

Owned partitions may be of different generations, if a member was absent for some time. If two members claim a
partition, the later generation wins. In the same generation neither does, since one of the claims must be wrong.

`sticky` stops all members during a rebalance, and has a member's partitions in its user data. `cooperative-sticky` lets
members continue with the partitions they keep: a partition that moves is first revoked from its owner, and assigned to
the new one in the next round.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.consumer.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    MemberSubscription,
    RacksOfPartitions,
)
from ottla.client.consumer.assignors.equal_subscriptions import assign_equal_subscriptions
from ottla.client.consumer.assignors.racks import Racks
from ottla.client.consumer.assignors.unequal_subscriptions import assign_unequal_subscriptions
from ottla.client.record import TopicPartition

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class PreviousAssignment(NamedTuple):
    """What a member owned, and since which generation; None when it does not say."""

    partitions: Sequence[TopicPartition]
    generation: int | None


class OwnedPartitions(NamedTuple):
    """Who may keep what, before the shares are evened out."""

    owned: Assignment
    disputed: frozenset[TopicPartition]


def resolve_owners(
    topics: Iterable[str],
    subscriptions: Mapping[str, MemberSubscription],
    previous_by_member: Mapping[str, PreviousAssignment],
) -> OwnedPartitions:
    """Give each owned partition to its last owner."""
    known = set(topics)
    owned: dict[str, dict[TopicPartition, None]] = {}
    owners: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member, previous in previous_by_member.items():
        mine = owned[member] = {}
        generation = NO_GENERATION if previous.generation is None else previous.generation
        for partition in previous.partitions:
            if partition.topic not in known:
                continue
            other = owners.get(partition)
            if other is not None:
                theirs = subscriptions[other].generation
                if generation < theirs:
                    continue
                owned[other].pop(partition, None)
                if generation == theirs:
                    disputed.add(partition)
                    owners[partition] = member
                    continue
            mine[partition] = None
            owners[partition] = member
    return OwnedPartitions({member: list(each) for member, each in owned.items()}, frozenset(disputed))


def assign_sticky(
    layout: RacksOfPartitions,
    subscriptions: Mapping[str, MemberSubscription],
    previous_by_member: Mapping[str, PreviousAssignment],
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """Share out the partitions; also say which change hands, or None where that was not kept track of."""
    subscribed = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    layout = {topic: partitions for topic, partitions in layout.items() if topic in subscribed}
    ownership = resolve_owners(layout, subscriptions, previous_by_member)
    racks = Racks(layout, subscriptions)
    distinct_topics = {frozenset(subscription.topics) for subscription in subscriptions.values()}
    if len(distinct_topics) <= 1:
        return assign_equal_subscriptions(layout, ownership.owned, ownership.disputed, racks)
    before = _earlier_owners(previous_by_member)
    return assign_unequal_subscriptions(layout, subscriptions, ownership.owned, before, racks), None


def _earlier_owners(previous_by_member: Mapping[str, PreviousAssignment]) -> dict[TopicPartition, str]:
    """Return who owned what in generations before the last one, the youngest of several."""
    generations = {
        member: NO_GENERATION if previous.generation is None else previous.generation
        for member, previous in previous_by_member.items()
    }
    last = max(generations.values(), default=NO_GENERATION)
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member, previous in previous_by_member.items():
        if generations[member] < last:
            for partition in previous.partitions:
                if partition not in found or generations[member] > found[partition][0]:
                    found[partition] = (generations[member], member)
    return {partition: member for partition, (_, member) in found.items()}


class StickyAssignor:
    """Sticky, with everybody stopped meanwhile."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._previous: PreviousAssignment | None = None

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Tell what was assigned last, and in which generation."""
        return None if self._previous is None else encode_previous(self._previous)

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember it for the next round."""
        self._previous = PreviousAssignment(tuple(partitions), generation)

    def assign(
        self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]
    ) -> Assignment:
        """Share out the partitions."""
        previous_by_member = {
            member: decode_previous(subscription.user_data) for member, subscription in subscriptions.items()
        }
        return assign_sticky(layout, subscriptions, previous_by_member)[0]


class CooperativeStickyAssignor:
    """Sticky, with everybody reading on meanwhile."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Tell the generation of the last assignment, for leaders that cannot read it elsewhere."""
        return _INT32.pack(self._generation)

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember the generation."""
        self._generation = generation

    def assign(
        self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]
    ) -> Assignment:
        """Assign the partitions. Those that move to another owner stay unassigned in this round."""
        previous_by_member = {
            member: _previous_of(subscription) for member, subscription in subscriptions.items()
        }
        assignment, moving = assign_sticky(layout, subscriptions, previous_by_member)
        for partition, member in (_moving(subscriptions, assignment) if moving is None else moving).items():
            assignment[member].remove(partition)
        return assignment


def _previous_of(subscription: MemberSubscription) -> PreviousAssignment:
    if subscription.generation >= 0:
        return PreviousAssignment(subscription.owned, subscription.generation)
    if subscription.user_data is None:
        return PreviousAssignment(subscription.owned, None)
    if len(subscription.user_data) < _INT32.size:
        return PreviousAssignment(subscription.owned, NO_GENERATION)
    return PreviousAssignment(subscription.owned, _INT32.unpack_from(subscription.user_data)[0])


def _moving(
    subscriptions: Mapping[str, MemberSubscription], assignment: Assignment
) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in assignment.items():
        owned, assigned = set(subscriptions[member].owned), set(partitions)
        added.update((each, member) for each in partitions if each not in owned)
        revoked |= owned - assigned
    return {partition: member for partition, member in added.items() if partition in revoked}


def encode_previous(previous: PreviousAssignment) -> bytes:
    """Return the user data of `sticky`: partitions by topic, and the generation."""
    topics: dict[str, list[int]] = {}
    for topic, number in previous.partitions:
        topics.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    parts.append(_INT32.pack(NO_GENERATION if previous.generation is None else previous.generation))
    return b"".join(parts)


def decode_previous(data: bytes | None) -> PreviousAssignment:
    """Read the user data of `sticky`; what cannot be read counts as nothing owned, ever."""
    if not data:
        return PreviousAssignment((), None)
    try:
        partitions: list[TopicPartition] = []
        [count] = _INT32.unpack_from(data)
        pos = 4
        for _ in range(count):
            [size] = _INT16.unpack_from(data, pos)
            topic = data[pos + 2 : pos + 2 + size].decode()
            pos += 2 + size
            [numbers] = _INT32.unpack_from(data, pos)
            if numbers < 0 or numbers > len(data) // 4:
                return PreviousAssignment((), NO_GENERATION)
            partitions += [
                TopicPartition(topic, number) for number in struct.unpack_from(f">{numbers}i", data, pos + 4)
            ]
            pos += 4 + 4 * numbers
        # The first version of it had no generation.
        generation = _INT32.unpack_from(data, pos)[0] if len(data) >= pos + 4 else None
    except (struct.error, UnicodeDecodeError):
        return PreviousAssignment((), NO_GENERATION)
    return PreviousAssignment(tuple(partitions), generation)
