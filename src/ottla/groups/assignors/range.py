"""The range assignor: each topic is cut into runs of neighbours, one for each of its members, in one fixed order.

A1  Members with an instance id come first, in its order; then the others, in the order of their member ids.
A2  The runs of a topic differ by one partition at most, and the longer ones go to those who come first. Topics with
    equally many partitions and the same members are therefore cut alike, so that they can be joined.
"""

from collections import Counter
from collections.abc import Mapping

from ottla.groups.assignors.spec import Subscriber


def assign_ranges(
    members: Mapping[str, Subscriber], counts: Mapping[bytes, int], homogeneous: bool = False
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Cut every topic among its members; what they held before does not count."""
    readers = Counter(topic for member in members.values() for topic in member.topics)
    begins = dict.fromkeys(readers, 0)
    turns = dict.fromkeys(readers, 0)
    assignment: dict[str, dict[bytes, frozenset[int]]] = {}
    for member_id in sorted(members, key=lambda each: _place(each, members[each])):
        share = assignment[member_id] = {}
        for topic in members[member_id].topics:
            length, longer = divmod(counts[topic], readers[topic])
            begin = begins[topic]
            end = begins[topic] = begin + length + (turns[topic] < longer)
            turns[topic] += 1
            if begin < end:
                share[topic] = frozenset(range(begin, end))
    return assignment


def _place(member_id: str, member: Subscriber) -> tuple[bool, str]:
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member_id
