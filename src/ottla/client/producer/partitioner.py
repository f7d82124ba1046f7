"""Chooses the partition of a record that was sent without one.

With a key, its hash decides, as in all Kafka clients. Records without a key go to one partition until it has had a
full batch. The next partition is chosen at random: all are equally likely, or, if queues grow, those with the shorter
queues are likelier (KIP-794).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from ottla.client.producer.murmur2 import partition_of
from ottla.client.producer.partition_queue import PartitionQueue, TopicQueues
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
    """Return the partitioner that `partitioner.class` names, or None for the default one."""
    if given is None:
        return None
    if isinstance(given, str):
        word = given.removeprefix(_JAVA).lower()
        if word in _DEFAULT:
            return None
        if word in _ROUND_ROBIN:
            return RoundRobin()
        raise InvalidValue(
            "partitioner.class", given, "it is not the name of a partitioner", "round_robin, or a function"
        )
    if isinstance(given, type):
        given = given()
    if callable(given):
        return given
    raise InvalidValue("partitioner.class", given, "it is not a function", "round_robin, or a function")


def draw_by_load(queued: Sequence[int], partitions: Sequence[int], entropy: Entropy) -> int:
    """Return a random partition. Those with fewer waiting batches are likelier."""
    most = max(queued)
    if min(queued) == most:
        return draw_evenly(partitions, entropy)
    sums = list(accumulate(most + 1 - size for size in queued))
    return partitions[bisect_right(sums, int(entropy.random() * sums[-1]))]


def draw_evenly(partitions: Sequence[int], entropy: Entropy) -> int:
    """Return a random partition. All are equally likely."""
    return partitions[int(entropy.random() * len(partitions))]


class PartitionSelector:
    """Selects the queue of a record for one producer."""

    def __init__(
        self,
        custom: Partitioner | None,
        *,
        ignores_keys: bool,
        adaptive: bool,
        entropy: Entropy,
    ) -> None:
        self._custom = custom
        self._ignores_keys = ignores_keys
        self._adaptive = adaptive
        self._chance = entropy
        # Whether a broker has not accepted batches for some time.
        self.is_slow: Callable[[int], bool] = lambda node: False

    def select(self, topic_queues: TopicQueues, key: bytes | None, value: bytes | None) -> PartitionQueue:
        """Return the queue of a record without a partition."""
        if self._custom is not None:
            chosen = self._custom(topic_queues.topic, key, value, topic_queues.count, topic_queues.available)
            if chosen is not None:
                return topic_queues.queues[chosen]
        elif key is not None and not self._ignores_keys:
            queue = topic_queues.queues[partition_of(key, topic_queues.count)]
            topic_queues.remember(key, queue)
            return queue
        return self.sticky_queue(topic_queues)

    def is_sticky(self, key: bytes | None) -> bool:
        """Whether a record with this key goes to the sticky queue."""
        return self._custom is None and (key is None or self._ignores_keys)

    def sticky_queue(self, topic_queues: TopicQueues) -> PartitionQueue:
        """Return the current queue of records without a key."""
        queue = topic_queues.sticky_queue
        if queue is None:
            queue = topic_queues.queues[self._draw(topic_queues)]
            topic_queues.sticky_bytes = 0
            if self._custom is None:
                topic_queues.sticky_queue = queue
        return queue

    def _draw(self, topic_queues: TopicQueues) -> int:
        available = topic_queues.available or range(topic_queues.count)
        if not self._adaptive:
            return draw_evenly(available, self._chance)
        queues = topic_queues.queues
        fit = [each for each in available if not self.is_slow(queues[each].leader)] or available
        return draw_by_load([len(queues[each].batches) for each in fit], fit, self._chance)
