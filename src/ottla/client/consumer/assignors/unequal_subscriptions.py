"""The sticky assignment if members subscribe to different topics.

Owned partitions stay with a member that still subscribes to them. The others go to the members with the fewest. Then
partitions are moved, one at a time, from members with more to members with fewer, until no move improves the balance.
The moves are kept only if the result is more balanced. If a partition of a topic was moved from one member to another,
no other partition of that topic is moved the opposite way: the first one is moved back instead.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import Assignment, MemberSubscription, RacksOfPartitions
from ottla.client.consumer.assignors.racks import Racks
from ottla.client.record import TopicPartition

Owned = dict[str, dict[TopicPartition, None]]


def assign_unequal_subscriptions(
    layout: RacksOfPartitions,
    subscriptions: Mapping[str, MemberSubscription],
    owned: Assignment,
    before: Mapping[TopicPartition, str],
    racks: Racks,
) -> Assignment:
    """Return the assignment; `before` says who owned what in earlier generations, to give it back if that is fair."""
    if not subscriptions:
        return {}
    work = _UnequalAssignment(layout, subscriptions, before, racks)
    everything = work.in_order()
    unassigned = work.keep(owned, everything)
    work.begin()
    if racks.are_relevant:
        unassigned = [each for each in unassigned if not work.assign(each, near=True)]
    for partition in unassigned:
        work.assign(partition, near=False)
    work.balance(everything, unassigned)
    return {member: list(partitions) for member, partitions in work.owned.items()}


class _UnequalAssignment:
    def __init__(
        self,
        layout: RacksOfPartitions,
        subscriptions: Mapping[str, MemberSubscription],
        before: Mapping[TopicPartition, str],
        racks: Racks,
    ) -> None:
        self.layout = layout
        self.before = before
        self.racks = racks
        self.topics = {
            member: {topic: None for topic in subscription.topics if topic in layout}
            for member, subscription in subscriptions.items()
        }
        self.wanted_by: dict[str, list[str]] = {topic: [] for topic in layout}
        for member, topics in self.topics.items():
            for topic in topics:
                self.wanted_by[topic].append(member)
        self.owned: Owned = {member: {} for member in subscriptions}
        self.owner: dict[TopicPartition, str] = {}
        self.holders: dict[str, dict[str, int]] = {
            topic: {} for topic in layout
        }  # and of how many partitions
        self.order: list[tuple[int, str]] = []  # members by how much they have, those who take part
        self.moves = _Moves()
        self.empty_before = True
        self.must_revoke = False

    # What stays

    def in_order(self) -> list[TopicPartition]:
        """Return all partitions, those that the fewest members want first."""
        return [
            TopicPartition(topic, number)
            for topic in sorted(self.layout, key=lambda topic: (len(self.wanted_by[topic]), topic))
            for number in range(len(self.layout[topic]))
        ]

    def keep(self, owned: Assignment, everything: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Leave what is owned where it is still wanted; return what has no owner."""
        for member, partitions in owned.items():
            for partition in partitions:
                if partition.topic not in self.topics[member] or self.racks.is_outside_rack(
                    member, partition
                ):
                    self.must_revoke = True
                elif partition.partition < len(self.layout[partition.topic]):
                    self._set_owner(partition, member)
        return [each for each in everything if each not in self.owner]

    def begin(self) -> None:
        """Sort the members by their number of partitions."""
        self.order = sorted((len(partitions), member) for member, partitions in self.owned.items())
        self.empty_before = self.order[-1][0] == 0

    def assign(self, partition: TopicPartition, *, near: bool) -> bool:
        """Assign a partition to the member with the fewest, in its racks if `near`. Return whether there was one."""
        for _, member in self.order:
            if partition.topic in self.topics[member] and not (
                near and self.racks.is_outside_rack(member, partition)
            ):
                self._remove_load(member)
                self._set_owner(partition, member)
                self._add_load(member)
                return True
        return False

    def _set_owner(self, partition: TopicPartition, member: str) -> None:
        holders, owner = self.holders[partition.topic], self.owner.get(partition)
        if owner is not None:
            del self.owned[owner][partition]
            holders[owner] -= 1
            if not holders[owner]:
                del holders[owner]
        self.owned[member][partition] = None
        self.owner[partition] = member
        holders[member] = holders.get(member, 0) + 1

    # What moves

    def balance(self, everything: Sequence[TopicPartition], unassigned: Sequence[TopicPartition]) -> None:
        """Move partitions until no move evens the load, and keep the outcome if it is more even than before."""
        movable = [each for each in everything if len(self.wanted_by[each.topic]) > 1]
        new = [each for each in unassigned if len(self.wanted_by[each.topic]) > 1]
        fixed: Owned = {}
        for member in [each for each in self.owned if not self._can_take_part(each)]:
            self._remove_load(member)
            fixed[member] = self.owned.pop(member)
        owned = {member: dict(partitions) for member, partitions in self.owned.items()}
        # Where nothing must be taken from anybody, try with what is new first.
        if not self.must_revoke:
            self._even_out(new)
        moved = self._even_out(movable)
        if not self.empty_before and moved and _unevenness(self.owned) >= _unevenness(owned):
            self.owned = owned
        self.owned.update(fixed)

    def _can_take_part(self, member: str) -> bool:
        mine = self.owned[member]
        return len(mine) < self._wanted(member) or any(len(self.wanted_by[each.topic]) > 1 for each in mine)

    def _wanted(self, member: str) -> int:
        return sum(len(self.layout[topic]) for topic in self.topics[member])

    def _even_out(self, partitions: Iterable[TopicPartition]) -> bool:
        moved = False
        again = True
        while again:
            again = False
            for partition in partitions:
                if self._is_even():
                    break
                target = self._better_owner(partition)
                if target is not None:
                    self._move(self.moves.partition_to_move(partition, self.owner[partition], target), target)
                    moved = again = True
        return moved

    def _is_even(self) -> bool:
        if self.order[0][0] >= self.order[-1][0] - 1:
            return True
        loads = {member: count for count, member in self.order}
        heaviest = {
            topic: max((loads.get(member, 0) for member in holders), default=0)
            for topic, holders in self.holders.items()
        }
        return not any(
            count + 1 < heaviest[topic] for count, member in self.order for topic in self.topics[member]
        )

    def _better_owner(self, partition: TopicPartition) -> str | None:
        """Return who should have a partition rather than its owner, or None when it is well where it is."""
        owner = self.owner[partition]
        load = len(self.owned[owner])
        earlier = self.before.get(partition)
        if (
            earlier is not None
            and earlier in self.owned
            and partition.topic in self.topics[earlier]
            and load > len(self.owned[earlier]) + 1
        ):
            return earlier
        for member in self.wanted_by[partition.topic]:
            if member in self.owned and load > len(self.owned[member]) + 1:
                return next(each for _, each in self.order if partition.topic in self.topics[each])
        return None

    def _move(self, partition: TopicPartition, target: str) -> None:
        source = self.owner[partition]
        self._remove_load(source)
        self._remove_load(target)
        self.moves.note(partition, source, target)
        self._set_owner(partition, target)
        self._add_load(target)
        self._add_load(source)

    def _remove_load(self, member: str) -> None:
        del self.order[bisect_left(self.order, (len(self.owned[member]), member))]

    def _add_load(self, member: str) -> None:
        insort(self.order, (len(self.owned[member]), member))


class _Moves:
    """Which partitions went from whom to whom, by topic."""

    def __init__(self) -> None:
        self._way: dict[TopicPartition, tuple[str, str]] = {}
        self._by_way: dict[tuple[str, str, str], set[TopicPartition]] = {}

    def partition_to_move(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move: one of the same topic that went the other way before, if there is any."""
        if partition in self._way:
            source = self._way[partition][0]
        return min(self._by_way.get((partition.topic, target, source), ()), default=partition)

    def note(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record a move. A move back to the origin removes the record."""
        if partition in self._way:
            origin, last = self._way.pop(partition)
            self._by_way[partition.topic, origin, last].discard(partition)
            if origin == target:
                return
            source = origin
        self._way[partition] = (source, target)
        self._by_way.setdefault((partition.topic, source, target), set()).add(partition)


def _unevenness(owned: Owned) -> int:
    """Return the sum of the differences between all pairs of loads."""
    loads = sorted(map(len, owned.values()))
    return sum(load * (2 * place - len(loads) + 1) for place, load in enumerate(loads))
