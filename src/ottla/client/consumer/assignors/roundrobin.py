"""The round robin assignor: all partitions in a row, dealt out one at a time to whoever is next and subscribes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

from ottla.client.consumer.assignors.spec import Assignment, Layout, Wish, ranked
from ottla.client.record import TopicPartition


class RoundRobinAssignor:
    """Partitions dealt out like cards."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Have nothing to say."""
        return None

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Have nothing to note."""

    def assign(self, layout: Layout, wishes: Mapping[str, Wish]) -> Assignment:
        """Deal out the partitions of all subscribed topics."""
        assignment: Assignment = {member: [] for member in wishes}
        subscribed = {topic for wish in wishes.values() for topic in wish.topics}
        turns = cycle(ranked(wishes))
        for topic in sorted(subscribed & layout.keys()):
            for number in range(len(layout[topic])):
                # Somebody subscribes to it, so this ends within one round.
                member = next(each for each in turns if topic in wishes[each].topics)
                assignment[member].append(TopicPartition(topic, number))
        return assignment
