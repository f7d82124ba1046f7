"""The sticky assignors: as even as can be, and within that as much like before as can be.

What members owned comes from different generations when some of them were absent for a while. Of two claims to a
partition the younger counts; two of the same generation cancel each other out, since one of them must be wrong.

`sticky` stops everybody while the group is rebalanced, and carries a member's partitions in its user data.
`cooperative-sticky` lets members go on with what stays theirs: a partition that changes hands is first taken from its
owner, and given to the new one in the round that follows.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.consumer.assignors.even import assign_evenly
from ottla.client.consumer.assignors.racks import Racks
from ottla.client.consumer.assignors.spec import NO_GENERATION, Assignment, Layout, Wish
from ottla.client.consumer.assignors.unequal import assign_unequally
from ottla.client.record import TopicPartition

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Past(NamedTuple):
    """What a member owned, and since which generation; None when it does not say."""

    partitions: Sequence[TopicPartition]
    generation: int | None


class Claims(NamedTuple):
    """Who may keep what, before the shares are evened out."""

    owned: Assignment
    disputed: frozenset[TopicPartition]


def settle_claims(topics: Iterable[str], wishes: Mapping[str, Wish], pasts: Mapping[str, Past]) -> Claims:
    """Give each partition that was owned to whoever owned it last."""
    known = set(topics)
    owned: dict[str, dict[TopicPartition, None]] = {}
    owners: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member, past in pasts.items():
        mine = owned[member] = {}
        generation = NO_GENERATION if past.generation is None else past.generation
        for partition in past.partitions:
            if partition.topic not in known:
                continue
            other = owners.get(partition)
            if other is not None:
                theirs = wishes[other].generation
                if generation < theirs:
                    continue
                owned[other].pop(partition, None)
                if generation == theirs:
                    disputed.add(partition)
                    owners[partition] = member
                    continue
            mine[partition] = None
            owners[partition] = member
    return Claims({member: list(each) for member, each in owned.items()}, frozenset(disputed))


def assign_stickily(
    layout: Layout, wishes: Mapping[str, Wish], pasts: Mapping[str, Past]
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """Share out the partitions; also say which change hands, or None where that was not kept track of."""
    subscribed = {topic for wish in wishes.values() for topic in wish.topics}
    layout = {topic: partitions for topic, partitions in layout.items() if topic in subscribed}
    claims = settle_claims(layout, wishes, pasts)
    racks = Racks(layout, wishes)
    subscriptions = {frozenset(wish.topics) for wish in wishes.values()}
    if len(subscriptions) <= 1:
        return assign_evenly(layout, claims.owned, claims.disputed, racks)
    before = _earlier_owners(pasts)
    return assign_unequally(layout, wishes, claims.owned, before, racks), None


def _earlier_owners(pasts: Mapping[str, Past]) -> dict[TopicPartition, str]:
    """Return who owned what in generations before the last one, the youngest of several."""
    generations = {
        member: NO_GENERATION if past.generation is None else past.generation
        for member, past in pasts.items()
    }
    last = max(generations.values(), default=NO_GENERATION)
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member, past in pasts.items():
        if generations[member] < last:
            for partition in past.partitions:
                if partition not in found or generations[member] > found[partition][0]:
                    found[partition] = (generations[member], member)
    return {partition: member for partition, (_, member) in found.items()}


class StickyAssignor:
    """Sticky, with everybody stopped meanwhile."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._past: Past | None = None

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Tell what was assigned last, and in which generation."""
        return None if self._past is None else encode_past(self._past)

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember it for the next round."""
        self._past = Past(tuple(partitions), generation)

    def assign(self, layout: Layout, wishes: Mapping[str, Wish]) -> Assignment:
        """Share out the partitions."""
        pasts = {member: decode_past(wish.user_data) for member, wish in wishes.items()}
        return assign_stickily(layout, wishes, pasts)[0]


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

    def assign(self, layout: Layout, wishes: Mapping[str, Wish]) -> Assignment:
        """Share out the partitions; those that change hands go to nobody in this round."""
        pasts = {member: _told_past(wish) for member, wish in wishes.items()}
        assignment, moving = assign_stickily(layout, wishes, pasts)
        for partition, member in (_moving(wishes, assignment) if moving is None else moving).items():
            assignment[member].remove(partition)
        return assignment


def _told_past(wish: Wish) -> Past:
    if wish.generation >= 0:
        return Past(wish.owned, wish.generation)
    if wish.user_data is None:
        return Past(wish.owned, None)
    if len(wish.user_data) < _INT32.size:
        return Past(wish.owned, NO_GENERATION)
    return Past(wish.owned, _INT32.unpack_from(wish.user_data)[0])


def _moving(wishes: Mapping[str, Wish], assignment: Assignment) -> dict[TopicPartition, str]:
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in assignment.items():
        owned, assigned = set(wishes[member].owned), set(partitions)
        added.update((each, member) for each in partitions if each not in owned)
        revoked |= owned - assigned
    return {partition: member for partition, member in added.items() if partition in revoked}


def encode_past(past: Past) -> bytes:
    """Return the user data of `sticky`: partitions by topic, and the generation."""
    topics: dict[str, list[int]] = {}
    for topic, number in past.partitions:
        topics.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    parts.append(_INT32.pack(NO_GENERATION if past.generation is None else past.generation))
    return b"".join(parts)


def decode_past(data: bytes | None) -> Past:
    """Read the user data of `sticky`; what cannot be read counts as nothing owned, ever."""
    if not data:
        return Past((), None)
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
                return Past((), NO_GENERATION)
            partitions += [
                TopicPartition(topic, number) for number in struct.unpack_from(f">{numbers}i", data, pos + 4)
            ]
            pos += 4 + 4 * numbers
        # The first version of it had no generation.
        generation = _INT32.unpack_from(data, pos)[0] if len(data) >= pos + 4 else None
    except (struct.error, UnicodeDecodeError):
        return Past((), NO_GENERATION)
    return Past(tuple(partitions), generation)
