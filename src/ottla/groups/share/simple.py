"""The simple assignor: partitions are shared out evenly, and as many members share one as it takes to keep all busy.

A1  Every partition that can be assigned goes to a member that wants its topic, if there is one.
A2  No member has more than its even share, and no partition more members than it takes.
A3  What a member has it keeps, as far as A2 allows.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.groups.assignors.spec import Subscriber

_Part = tuple[bytes, int]
_Held = dict[str, dict[_Part, None]]


def assign(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, Iterable[int]], homogeneous: bool
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Return what each member shall read; `partitions` are those that can be assigned, by topic.

    When all members want the same, all topics are shared out together, otherwise each among those who want it.
    """
    topics = sorted(frozenset[bytes]().union(*(member.topics for member in members.values())))
    pools = [topics] if homogeneous else [[topic] for topic in topics]
    found: _Held = {member_id: {} for member_id in members}
    for pool in pools:
        parts = [(topic, partition) for topic in pool for partition in sorted(partitions.get(topic, ()))]
        takers = [member_id for member_id in sorted(members) if members[member_id].topics >= set(pool)]
        holds = {member_id: _held(members[member_id], pool) for member_id in takers}
        for member_id, taken in _share(takers, parts, holds).items():
            found[member_id].update(taken)
    return {member_id: _by_topic(taken) for member_id, taken in found.items()}


def _share(takers: Sequence[str], parts: Sequence[_Part], holds: Mapping[str, set[_Part]]) -> _Held:
    """Share parts out among members that want all of them."""
    held: _Held = {member_id: {} for member_id in takers}
    if not parts or not takers:
        return held
    most = -(-len(takers) // len(parts))  # members that share one part
    total = most * len(parts)
    wanted = {
        member_id: -(-total * (place + 1) // len(takers)) + (-total * place // len(takers))
        for place, member_id in enumerate(takers)
    }
    sharers: dict[_Part, int] = dict.fromkeys(parts, 0)
    for member_id in takers:
        for part in parts:
            if part in holds[member_id] and sharers[part] < most and len(held[member_id]) < wanted[member_id]:
                held[member_id][part] = None
                sharers[part] += 1
    unfilled = [member_id for member_id in takers if len(held[member_id]) < wanted[member_id]]
    for part in parts:
        # Each in turn, so that neighbours go to different members.
        for member_id in list(unfilled):
            if sharers[part] == most:
                break
            if part in held[member_id]:
                continue
            held[member_id][part] = None
            sharers[part] += 1
            unfilled.remove(member_id)
            if len(held[member_id]) < wanted[member_id]:
                unfilled.append(member_id)
    return held


def _held(member: Subscriber, pool: Iterable[bytes]) -> set[_Part]:
    return {(topic, partition) for topic in pool for partition in member.holds.get(topic, ())}


def _by_topic(parts: Iterable[_Part]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic, partition in parts:
        found.setdefault(topic, set()).add(partition)
    return {topic: frozenset(partitions) for topic, partitions in found.items()}
