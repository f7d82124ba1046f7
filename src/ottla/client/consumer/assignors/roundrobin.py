"""The round robin assignor: partitions go in order to the next member that subscribes to their topic."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    MemberSubscription,
    RacksOfPartitions,
    in_member_order,
)
from ottla.client.record import TopicPartition


class RoundRobinAssignor:
    """Assigns partitions one at a time, in turns."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Have nothing to say."""
        return None

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Have nothing to note."""

    def assign(
        self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]
    ) -> Assignment:
        """Deal out the partitions of all subscribed topics."""
        assignment: Assignment = {member: [] for member in subscriptions}
        subscribed = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        turns = cycle(in_member_order(subscriptions))
        for topic in sorted(subscribed & layout.keys()):
            for number in range(len(layout[topic])):
                # At least one member subscribes to the topic, so this ends within one round.
                member = next(each for each in turns if topic in subscriptions[each].topics)
                assignment[member].append(TopicPartition(topic, number))
        return assignment
