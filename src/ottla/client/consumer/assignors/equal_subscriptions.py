"""The sticky assignment if all members subscribe to the same topics.

The numbers of partitions of two members differ by at most one, and it is known how many members get one more.
First each member keeps what it owned, up to its number. Then the rest is assigned, by racks first if they matter.
"""

from collections import deque
from collections.abc import Collection, Sequence

from ottla.client.consumer.assignors.assignor import Assignment, RacksOfPartitions
from ottla.client.consumer.assignors.racks import Racks
from ottla.client.record import TopicPartition


def assign_equal_subscriptions(
    layout: RacksOfPartitions, owned: Assignment, disputed: Collection[TopicPartition], racks: Racks
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Return the assignment, and the partitions that go from one owner to another."""
    if not owned:
        return {}, {}
    deal = _EqualAssignment(layout, owned, disputed, racks)
    deal.keep()
    left = deal.unassigned()
    deal.below.sort()
    deal.at_least = deque(sorted(deal.at_least))
    if racks.are_relevant:
        left = deal.assign_near(racks.hardest_first(left))
    deal.assign_rest(left)
    return deal.assignment, deal.moving


class _EqualAssignment:
    def __init__(
        self, layout: RacksOfPartitions, owned: Assignment, disputed: Collection[TopicPartition], racks: Racks
    ) -> None:
        self.layout = layout
        self.owned = owned
        self.disputed = disputed
        self.racks = racks
        total = sum(map(len, layout.values()))
        self.least, self.richer_max = divmod(total, len(owned))
        self.most = self.least + (1 if self.richer_max else 0)
        self.richer = 0  # members that have the most, where that is more than the least
        self.below: list[str] = []
        self.at_least: deque[str] = deque()  # have the least, and may get one more
        self.assignment: Assignment = {member: [] for member in owned}
        self.given_up: dict[TopicPartition, str] = {}
        self.moving: dict[TopicPartition, str] = {}

    def keep(self) -> None:
        """Let everybody keep what it owned, up to its share."""
        for member, partitions in self.owned.items():
            mine = [each for each in partitions if not self.racks.is_outside_rack(member, each)]
            self.given_up.update(
                (each, member) for each in partitions if self.racks.is_outside_rack(member, each)
            )
            mine = sorted(
                (each for each in mine if each not in self.disputed),
                key=lambda each: (each.partition, each.topic),
            )
            if len(mine) < self.least:
                self.assignment[member] = mine
                self.below.append(member)
                continue
            if len(mine) >= self.most and self.richer < self.richer_max:
                self.richer += 1
                if self.richer == self.richer_max:
                    self.at_least.clear()
                share = self.most
            else:
                share = self.least
                if self.richer < self.richer_max:
                    self.at_least.append(member)
            self.assignment[member] = mine[:share]
            self.given_up.update((each, member) for each in mine[share:])

    def unassigned(self) -> list[TopicPartition]:
        """Return the unassigned partitions, in order."""
        taken = {each for partitions in self.assignment.values() for each in partitions}
        return [
            partition
            for topic in sorted(self.layout)
            for number in range(len(self.layout[topic]))
            if (partition := TopicPartition(topic, number)) not in taken
        ]

    def assign_near(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Deal out within racks, as far as the shares allow, and return the rest."""
        rest: list[TopicPartition] = []
        turn = 0
        for partition in partitions:
            index = self.racks.next_near(partition, self.below, turn)
            if index >= 0:
                member = self.below[index]
                turn = self._fill_below(member, index)
            elif (first := self.racks.next_near(partition, self.at_least, 0)) >= 0:
                member = self.at_least[first]
                if len(self.assignment[member]) + 1 == self.most:
                    del self.at_least[first]
                    self._one_richer()
            else:
                rest.append(partition)
                continue
            self._give(partition, member)
        return rest

    def _fill_below(self, member: str, index: int) -> int:
        """Count one more for a member below its share, and return whose turn is next."""
        count = len(self.assignment[member]) + 1
        if count < self.least:
            index += 1
        else:
            self.below.remove(member)
            if count < self.most and self.richer < self.richer_max:
                self.at_least.append(member)
        return index % len(self.below) if self.below else 0

    def _one_richer(self) -> None:
        self.richer += 1
        if self.richer == self.richer_max:
            self.at_least.clear()

    def assign_rest(self, partitions: Sequence[TopicPartition]) -> None:
        """Deal out the rest in rounds: first up to the least, then one more for some."""
        turn = 0
        for partition in partitions:
            if self.below:
                turn = turn if turn < len(self.below) else 0
                member = self.below[turn]
                turn += 1
            else:
                member = self.at_least.popleft()
            count = self._give(partition, member)
            if count == self.least:
                turn -= 1
                del self.below[turn]
                self.at_least.append(member)

    def _give(self, partition: TopicPartition, member: str) -> int:
        self.assignment[member].append(partition)
        if self.given_up.get(partition, member) != member or partition in self.disputed:
            self.moving[partition] = member
        return len(self.assignment[member])
