"""What an assignor is given, and what it returns."""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

# Partitions by the id of their topic.
Assignment = Mapping[bytes, Set[int]]


class Subscriber(NamedTuple):
    """A member as an assignor sees it: the topics it wants, and what it shall read so far."""

    topics: Set[bytes]
    holds: Assignment
    instance_id: str | None = None


# (members by id, partitions of each topic, whether all members want the same topics) -> the new assignment.
Assignor = Callable[
    [Mapping[str, Subscriber], Mapping[bytes, int], bool], dict[str, dict[bytes, frozenset[int]]]
]
