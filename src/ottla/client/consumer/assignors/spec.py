"""What an assignor is given and what it gives: members with their wishes, topics with racks; partitions by member.

A1  Every partition of a subscribed topic goes to one member that subscribes to the topic, or, in a cooperative round,
    to nobody until its owner has let go of it.
A2  An assignor is asked by whichever member leads, so members of a group, in whatever language, must have it in common
    by name, and read each other's user data.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ottla.client.record import TopicPartition

NO_GENERATION = -1

# Partitions of a topic, each with the racks that have a replica of it.
Layout = Mapping[str, Sequence[frozenset[str]]]
Assignment = dict[str, list[TopicPartition]]


class Wish(NamedTuple):
    """What a member says of itself when it joins: its topics, and what it owned in which generation."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    instance: str | None = None


class Assignor(Protocol):
    """One way to share out partitions. An own one is handed over as an object in partition.assignment.strategy."""

    name: str
    cooperative: bool  # whether members may keep reading what stays theirs while the group is rebalanced

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Return what is to be known of this member by the assignor of whoever leads."""
        ...

    def assign(self, layout: Layout, wishes: Mapping[str, Wish]) -> Assignment:
        """Share out the partitions; every member has a list, be it empty."""
        ...

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Take note of what this member was assigned."""
        ...


def ranked(wishes: Mapping[str, Wish]) -> list[str]:
    """Return the members in the order in which they are served: static ones first, by their names across restarts."""
    return sorted(
        wishes,
        key=lambda member: (
            (0, wishes[member].instance or "", "")
            if wishes[member].instance is not None
            else (1, member, member)
        ),
    )


def racks_matter(member_racks: Iterable[str], racks: Sequence[frozenset[str]]) -> bool:
    """Say whether racks can make a difference: some member shares one with a partition that is not everywhere."""
    everywhere = frozenset[str]().union(*racks)
    return not everywhere.isdisjoint(member_racks) and any(each != everywhere for each in racks)
