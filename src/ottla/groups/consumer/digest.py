"""A number for the topics that a group reads, which changes when one of them does.

D1  Topics that do not exist do not count; a group without topics has the number 0.
D2  A topic's number covers its id, its name, its partitions and the racks they are on, in Kafka's own layout.
"""

import struct
from collections.abc import Iterable

from ottla.groups.consumer.xxh3 import xxh3
from ottla.groups.topics import TopicFacts, TopicsView

_INT = struct.Struct("<i")
_LONG = struct.Struct("<Q")


class Digests:
    """Computes the numbers, and keeps those of topics until they change."""

    __slots__ = ("_known", "_topics")

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self._known: dict[str, tuple[TopicFacts, int]] = {}

    def of(self, names: Iterable[str]) -> int:
        """Return the number of a set of topics, signed as it is kept in records."""
        found = [self._topic(facts) for name in sorted(names) if (facts := self._topics.find(name))]
        if not found:
            return 0
        value = xxh3(b"".join(_LONG.pack(each) for each in found))
        return value - (1 << 64) if value >> 63 else value

    def _topic(self, facts: TopicFacts) -> int:
        known = self._known.get(facts.name)
        if known is not None and known[0] == facts:
            return known[1]
        value = topic_digest(facts)
        self._known[facts.name] = facts, value
        return value


def topic_digest(facts: TopicFacts) -> int:
    """Return the number of one topic, unsigned."""
    parts = [b"\0", facts.id[7::-1], facts.id[:7:-1], _string(facts.name), _INT.pack(facts.partitions)]
    for partition in range(facts.partitions):
        parts.append(_INT.pack(partition))
        racks = facts.racks[partition] if partition < len(facts.racks) else frozenset()
        for rack in sorted(racks):
            parts += [_INT.pack(_units(rack)), _string(rack)]
    return xxh3(b"".join(parts))


def _string(text: str) -> bytes:
    return text.encode("utf-16-le") + _INT.pack(_units(text))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
