"""An even spread among members who all want the same topics.

A1  Two members' shares differ by one partition at most.
A2  A member keeps what it held up to its quota; the quota is one larger for as many members as there are partitions
    left over, and those who already hold that much are served first.
"""

from collections import defaultdict
from collections.abc import Mapping, Set

from ottla.groups.assignors.spec import Subscriber


def spread(
    members: Mapping[str, Subscriber], counts: Mapping[bytes, int]
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Share the topics of the first member, which are everyone's, among all."""
    topics = next(iter(members.values())).topics
    if not topics:
        return {}
    free = _unheld(members, topics, counts)
    floor, extras = divmod(sum(counts[topic] for topic in topics), len(members))
    kept: dict[str, dict[bytes, frozenset[int]]] = {}
    wanting: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(members.items()):
        larger = extras > 0
        share, quota = _keep(member, topics, floor + larger, free)
        kept[member_id] = share
        if quota and larger and len(members) - index > extras:
            # Another, who holds more, may have the extra one; unless only those are left who must take one.
            quota -= 1
            larger = False
        extras -= larger
        if quota:
            wanting.append((member_id, quota))
    _hand_out(free, wanting, kept)
    return kept


def _unheld(
    members: Mapping[str, Subscriber], topics: Set[bytes], counts: Mapping[bytes, int]
) -> list[tuple[bytes, int]]:
    held: defaultdict[bytes, set[int]] = defaultdict(set)
    for member in members.values():
        for topic, partitions in member.holds.items():
            held[topic].update(partitions)
    return [(topic, p) for topic in sorted(topics) for p in range(counts[topic]) if p not in held[topic]]


def _keep(
    member: Subscriber, topics: Set[bytes], quota: int, free: list[tuple[bytes, int]]
) -> tuple[dict[bytes, frozenset[int]], int]:
    """Return what a member keeps and how much more it may take; what exceeds its quota becomes free."""
    share: dict[bytes, frozenset[int]] = {}
    for topic, partitions in member.holds.items():
        if topic not in topics:
            continue
        held = sorted(partitions)
        if kept := held[:quota]:
            share[topic] = frozenset(kept)
        free += ((topic, partition) for partition in held[quota:])
        quota -= len(kept)
    return share, quota


def _hand_out(
    free: list[tuple[bytes, int]],
    wanting: list[tuple[str, int]],
    kept: dict[str, dict[bytes, frozenset[int]]],
) -> None:
    at = 0
    for member_id, quota in wanting:
        share = kept[member_id]
        gains: defaultdict[bytes, list[int]] = defaultdict(list)
        for topic, partition in free[at : at + quota]:
            gains[topic].append(partition)
        at += quota
        for topic, partitions in gains.items():
            share[topic] = share.get(topic, frozenset()).union(partitions)
    assert at >= len(free), "every partition finds a member"
