"""The interface of assignors: from the subscriptions of members, and topics with racks, to partitions by member.

A1  Every partition of a subscribed topic is assigned to one member that subscribes to the topic, or, in a cooperative
    round, to no member until its owner has revoked it.
A2  The leader of the group runs the assignor. So all members, in all languages, must have an assignor of the same name,
    and read each other's user data.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ottla.client.record import TopicPartition

NO_GENERATION = -1

# Partitions of a topic, each with the racks that have a replica of it.
RacksOfPartitions = Mapping[str, Sequence[frozenset[str]]]
Assignment = dict[str, list[TopicPartition]]


class MemberSubscription(NamedTuple):
    """The subscription of a member when it joins: its topics, and the partitions it owned in which generation."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    instance: str | None = None


class Assignor(Protocol):
    """An assignor. A custom one is an object in partition.assignment.strategy."""

    name: str
    cooperative: bool  # whether members may keep reading what stays theirs while the group is rebalanced

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Return the user data of this member for the assignor of the leader."""
        ...

    def assign(
        self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]
    ) -> Assignment:
        """Assign the partitions. Every member has a list, which may be empty."""
        ...

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Store the assignment of this member."""
        ...


def in_member_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Return the members in the order of assignment: static ones first, by instance id."""
    return sorted(
        subscriptions,
        key=lambda member: (
            (0, subscriptions[member].instance or "", "")
            if subscriptions[member].instance is not None
            else (1, member, member)
        ),
    )


def racks_are_relevant(member_racks: Iterable[str], racks: Sequence[frozenset[str]]) -> bool:
    """Return whether racks matter: a member is in the rack of a partition that is not in all racks."""
    everywhere = frozenset[str]().union(*racks)
    return not everywhere.isdisjoint(member_racks) and any(each != everywhere for each in racks)
