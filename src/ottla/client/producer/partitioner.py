"""Which partition a record goes to when nobody says: by its key, or where there is the least to do.

With a key, the hash of it decides, as in every client of Kafka's kind. Without one, records stay with a partition
until it has had a batch's worth, and the next is drawn by chance: evenly, or, where broker and line let some queues
grow, the likelier the shorter its queue is (KIP-794).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from ottla.client.producer.lane import Lane, Road
from ottla.client.producer.murmur import partition_of
from ottla.metadata.settings.error import InvalidValue
from ottla.world.entropy import Entropy

_ROUND_ROBIN = {"roundrobin", "round_robin", "round-robin", "roundrobinpartitioner"}
_DEFAULT = {"", "default", "sticky", "defaultpartitioner", "uniformstickypartitioner"}
_JAVA = "org.apache.kafka.clients.producer."


class Partitioner(Protocol):
    """A function that chooses the partition of a record. It returns None to leave the choice to the producer."""

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]
    ) -> int | None:
        """Return a partition from 0 to `partitions` - 1. Those in `available` have a leader now."""
        ...


class RoundRobin:
    """One partition after another, whatever the key."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]
    ) -> int:
        """Return the next partition that has a leader, or the next at all."""
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + 1
        return available[turn % len(available)] if available else turn % partitions


def partitioner(given: object) -> Partitioner | None:
    """Return what the setting `partitioner.class` stands for, or None for the choice by key or stickiness."""
    if given is None:
        return None
    if isinstance(given, str):
        word = given.removeprefix(_JAVA).lower()
        if word in _DEFAULT:
            return None
        if word in _ROUND_ROBIN:
            return RoundRobin()
        raise InvalidValue("partitioner.class", given, "it names none", "round_robin, or a function")
    if isinstance(given, type):
        given = given()
    if callable(given):
        return given
    raise InvalidValue("partitioner.class", given, "it is no function", "round_robin, or a function")


def draw(queued: Sequence[int], partitions: Sequence[int], chance: Entropy) -> int:
    """Return one of the partitions, the likelier the fewer batches wait for it."""
    most = max(queued)
    if min(queued) == most:
        return evenly(partitions, chance)
    sums = list(accumulate(most + 1 - size for size in queued))
    return partitions[bisect_right(sums, int(chance.random() * sums[-1]))]


def evenly(partitions: Sequence[int], chance: Entropy) -> int:
    """Return one of the partitions."""
    return partitions[int(chance.random() * len(partitions))]


class Choice:
    """How one producer chooses lanes."""

    def __init__(
        self,
        own: Partitioner | None,
        *,
        ignores_keys: bool,
        adaptive: bool,
        chance: Entropy,
    ) -> None:
        self._own = own
        self._ignores_keys = ignores_keys
        self._adaptive = adaptive
        self._chance = chance
        # Whether a broker keeps batches waiting.
        self.is_slow: Callable[[int], bool] = lambda node: False

    def route(self, road: Road, key: bytes | None, value: bytes | None) -> Lane:
        """Return the lane for a record whose partition nobody gave."""
        if self._own is not None:
            chosen = self._own(road.topic, key, value, road.count, road.available)
            if chosen is not None:
                return road.lanes[chosen]
        elif key is not None and not self._ignores_keys:
            lane = road.lanes[partition_of(key, road.count)]
            road.remember(key, lane)
            return lane
        return self.sticky(road)

    def sticks(self, key: bytes | None) -> bool:
        """Whether a record with this key goes where the last one without a key went."""
        return self._own is None and (key is None or self._ignores_keys)

    def sticky(self, road: Road) -> Lane:
        """Return the lane that records without a key take now."""
        lane = road.sticky
        if lane is None:
            lane = road.lanes[self._draw(road)]
            road.sticky_bytes = 0
            if self._own is None:
                road.sticky = lane
        return lane

    def _draw(self, road: Road) -> int:
        available = road.available or range(road.count)
        if not self._adaptive:
            return evenly(available, self._chance)
        lanes = road.lanes
        fit = [each for each in available if not self.is_slow(lanes[each].leader)] or available
        return draw([len(lanes[each].batches) for each in fit], fit, self._chance)
