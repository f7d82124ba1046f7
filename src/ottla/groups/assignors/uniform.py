"""The uniform assignor: everyone reads equally much, and as little as possible changes hands.

It has two ways: a short one for groups whose members all want the same topics, and a longer one for the others.
"""

from collections.abc import Mapping

from ottla.groups.assignors.even import spread
from ottla.groups.assignors.levelling import level
from ottla.groups.assignors.spec import Subscriber


def assign_uniformly(
    members: Mapping[str, Subscriber], counts: Mapping[bytes, int], homogeneous: bool
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Assign every partition of every topic that has a subscriber."""
    if not members:
        return {}
    return spread(members, counts) if homogeneous else level(members, counts)
