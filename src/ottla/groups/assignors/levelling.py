"""Levelling among members who want different topics: from the most loaded to the least, as long as it helps.

A1  Whoever holds a partition of a topic it wants keeps it, unless moving it to a less loaded subscriber of that topic
    makes the two more even.
A2  Topics are served in a fixed order: those with the most partitions for each subscriber first, then those with the
    fewest subscribers, then by id.
A3  The work is bounded: passes over the topics end when a whole round has moved nothing, and after sixteen at the
    latest.
"""

import struct
from collections.abc import Iterable, Mapping

from ottla.groups.assignors.ladder import Ladder
from ottla.groups.assignors.spec import Subscriber

_PASSES_MAX = 16
# Kafka orders ids as two signed numbers.
_SIGNED = struct.Struct(">qq")
_NOBODY = -1


def level(
    members: Mapping[str, Subscriber], counts: Mapping[bytes, int]
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Assign what nobody holds to the least loaded, then even out."""
    plan = _Plan(list(members.values()), counts)
    if not plan.subscribers:
        return {}
    plan.assign_unheld()
    plan.even_out()
    return dict(zip(members, plan.shares(), strict=True))


class _Plan:
    """Who shall own what, by the place of a member in the group."""

    def __init__(self, members: list[Subscriber], counts: Mapping[bytes, int]) -> None:
        self._counts = counts
        self._loads = [0] * len(members)
        self.subscribers: dict[bytes, list[int]] = {}
        for place, member in enumerate(members):
            for topic in member.topics:
                self.subscribers.setdefault(topic, []).append(place)
        self._owners = {topic: [_NOBODY] * counts[topic] for topic in self.subscribers}
        for place, member in enumerate(members):
            for topic in member.holds.keys() & member.topics:
                for partition in member.holds[topic]:
                    self._owners[topic][partition] = place
                    self._loads[place] += 1

    def assign_unheld(self) -> None:
        """Give every partition without an owner to the least loaded subscriber of its topic."""
        unheld = {
            topic: [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in self._owners.items()
        }
        for topic in self._ordered(topic for topic, partitions in unheld.items() if partitions):
            ladder = Ladder(self._loads, self.subscribers[topic])
            for partition in unheld[topic]:
                self._give(topic, partition, ladder.poorest())

    def even_out(self) -> None:
        """Move partitions from topic to topic until a round over all of them moves nothing."""
        topics = self._ordered(topic for topic, places in self.subscribers.items() if len(places) > 1)
        last_moved = -1
        for _ in range(_PASSES_MAX):
            for index, topic in enumerate(topics):
                if index == last_moved:
                    return
                if self._even_out(topic) or last_moved == -1:
                    last_moved = index

    def shares(self) -> list[dict[bytes, frozenset[int]]]:
        """Return what each member shall own."""
        found: list[dict[bytes, set[int]]] = [{} for _ in self._loads]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                found[owner].setdefault(topic, set()).add(partition)
        return [{topic: frozenset(each) for topic, each in share.items()} for share in found]

    def _ordered(self, topics: Iterable[bytes]) -> list[bytes]:
        def order(topic: bytes) -> tuple[float, int, tuple[int, int]]:
            readers = len(self.subscribers[topic])
            signed: tuple[int, int] = _SIGNED.unpack(topic)
            return -self._counts[topic] / readers, readers, signed

        return sorted(topics, key=order)

    def _give(self, topic: bytes, partition: int, place: int) -> None:
        owners = self._owners[topic]
        if owners[partition] != _NOBODY:
            self._loads[owners[partition]] -= 1
        owners[partition] = place
        self._loads[place] += 1

    def _even_out(self, topic: bytes) -> int:
        """Move partitions of one topic to less loaded subscribers, and return how many were moved."""
        ladder = Ladder(self._loads, self.subscribers[topic])
        if ladder.spread <= 1:
            return 0
        # What a member has of this topic now; what it gains meanwhile is not moved on.
        spare: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            spare.setdefault(owner, []).append(partition)
        moved = 0
        while not ladder.is_level:
            richest = ladder.richest()
            while richest is not None and not spare.get(richest):
                ladder.exclude()
                richest = ladder.richest()
            if richest is None:
                break
            partition = spare[richest].pop()
            poorest = ladder.poorest()
            if ladder.is_level:
                break
            self._give(topic, partition, poorest)
            moved += 1
        return moved
