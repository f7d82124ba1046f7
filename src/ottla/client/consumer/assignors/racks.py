"""Racks of members and partitions, as far as they matter to the sticky assignors."""

from collections.abc import Mapping, Sequence

from ottla.client.consumer.assignors.assignor import MemberSubscription, RacksOfPartitions, racks_are_relevant
from ottla.client.record import TopicPartition

_NOWHERE: frozenset[str] = frozenset()


class Racks:
    """Who is near what. Empty, and so of no effect, where racks make no difference."""

    def __init__(self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]) -> None:
        members = {
            member: subscription.rack for member, subscription in subscriptions.items() if subscription.rack
        }
        flat = [racks for partitions in layout.values() for racks in partitions]
        if not racks_are_relevant(members.values(), flat):
            members, layout = {}, {}
        self.of_member: dict[str, str] = members
        self.of_partition: dict[TopicPartition, frozenset[str]] = {
            TopicPartition(topic, number): racks
            for topic, partitions in layout.items()
            for number, racks in enumerate(partitions)
        }

    @property
    def are_relevant(self) -> bool:
        """Whether nearness is to be looked at."""
        return bool(self.of_member)

    def is_outside_rack(self, member: str, partition: TopicPartition) -> bool:
        """Say whether a member has a rack, and no replica of the partition is in it."""
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of_partition.get(partition, _NOWHERE)

    def is_in_rack(self, member: str, partition: TopicPartition) -> bool:
        """Say whether a member has a rack in which there is a replica of the partition."""
        return self.of_member.get(member) in self.of_partition.get(partition, _NOWHERE)

    def hardest_first(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with the fewest members near them first."""
        if not self.are_relevant:
            return list(partitions)
        counts: dict[str, int] = {}
        for rack in self.of_member.values():
            counts[rack] = counts.get(rack, 0) + 1
        return sorted(
            partitions,
            key=lambda each: sum(counts.get(rack, 0) for rack in self.of_partition.get(each, _NOWHERE)),
        )

    def next_near(self, partition: TopicPartition, members: Sequence[str], first: int) -> int:
        """Return the place of the first member near the partition, looking around from `first`; -1 for none."""
        for step in range(len(members)):
            index = (first + step) % len(members)
            if self.is_in_rack(members[index], partition):
                return index
        return -1
