"""The sticky assignment where members subscribe to different topics.

Partitions that are owned by somebody who still wants them stay; the others go to whoever has least. Then partitions
are moved, one at a time, from those with more to those with less, until no move evens the load. The moves count only
if the result is more even than what was there before them; and where a partition of a topic went one way between two
members, none goes the other way, but the first goes back.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.racks import Racks
from ottla.client.consumer.assignors.spec import Assignment, Layout, Wish
from ottla.client.record import TopicPartition

Owned = dict[str, dict[TopicPartition, None]]


def assign_unequally(
    layout: Layout,
    wishes: Mapping[str, Wish],
    owned: Assignment,
    before: Mapping[TopicPartition, str],
    racks: Racks,
) -> Assignment:
    """Return the assignment; `before` says who owned what in earlier generations, to give it back if that is fair."""
    if not wishes:
        return {}
    scales = _Scales(layout, wishes, before, racks)
    everything = scales.in_order()
    homeless = scales.keep(owned, everything)
    scales.begin()
    if racks.matter:
        homeless = [each for each in homeless if not scales.place(each, near=True)]
    for partition in homeless:
        scales.place(partition, near=False)
    scales.balance(everything, homeless)
    return {member: list(partitions) for member, partitions in scales.owned.items()}


class _Scales:
    def __init__(
        self,
        layout: Layout,
        wishes: Mapping[str, Wish],
        before: Mapping[TopicPartition, str],
        racks: Racks,
    ) -> None:
        self.layout = layout
        self.before = before
        self.racks = racks
        self.topics = {
            member: {topic: None for topic in wish.topics if topic in layout}
            for member, wish in wishes.items()
        }
        self.wanted_by: dict[str, list[str]] = {topic: [] for topic in layout}
        for member, topics in self.topics.items():
            for topic in topics:
                self.wanted_by[topic].append(member)
        self.owned: Owned = {member: {} for member in wishes}
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
                if partition.topic not in self.topics[member] or self.racks.apart(member, partition):
                    self.must_revoke = True
                elif partition.partition < len(self.layout[partition.topic]):
                    self._hand_over(partition, member)
        return [each for each in everything if each not in self.owner]

    def begin(self) -> None:
        """Put everybody on the scales."""
        self.order = sorted((len(partitions), member) for member, partitions in self.owned.items())
        self.empty_before = self.order[-1][0] == 0

    def place(self, partition: TopicPartition, *, near: bool) -> bool:
        """Give a partition to whoever has least, of those near it if so asked; say whether there was anybody."""
        for _, member in self.order:
            if partition.topic in self.topics[member] and not (near and self.racks.apart(member, partition)):
                self._weigh_out(member)
                self._hand_over(partition, member)
                self._weigh_in(member)
                return True
        return False

    def _hand_over(self, partition: TopicPartition, member: str) -> None:
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

    def balance(self, everything: Sequence[TopicPartition], homeless: Sequence[TopicPartition]) -> None:
        """Move partitions until no move evens the load, and keep the outcome if it is more even than before."""
        movable = [each for each in everything if len(self.wanted_by[each.topic]) > 1]
        new = [each for each in homeless if len(self.wanted_by[each.topic]) > 1]
        fixed: Owned = {}
        for member in [each for each in self.owned if not self._can_take_part(each)]:
            self._weigh_out(member)
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
                    self._move(self.moves.instead(partition, self.owner[partition], target), target)
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
        self._weigh_out(source)
        self._weigh_out(target)
        self.moves.note(partition, source, target)
        self._hand_over(partition, target)
        self._weigh_in(target)
        self._weigh_in(source)

    def _weigh_out(self, member: str) -> None:
        del self.order[bisect_left(self.order, (len(self.owned[member]), member))]

    def _weigh_in(self, member: str) -> None:
        insort(self.order, (len(self.owned[member]), member))


class _Moves:
    """Which partitions went from whom to whom, by topic."""

    def __init__(self) -> None:
        self._way: dict[TopicPartition, tuple[str, str]] = {}
        self._by_way: dict[tuple[str, str, str], set[TopicPartition]] = {}

    def instead(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move: one of the same topic that went the other way before, if there is any."""
        if partition in self._way:
            source = self._way[partition][0]
        return min(self._by_way.get((partition.topic, target, source), ()), default=partition)

    def note(self, partition: TopicPartition, source: str, target: str) -> None:
        """Take note of a move; one back to where it came from is as if there had been none."""
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
