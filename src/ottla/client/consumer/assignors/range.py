"""The range assignor: of each topic, the first member gets the first few partitions, the next the next few.

Topics of the same size and subscribers are split at the same places, so partitions of one number stay together. Where
racks matter, a partition goes to a member of one of its racks first, as far as the shares allow; what is left over is
then split as if there were no racks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    MemberSubscription,
    RacksOfPartitions,
    in_member_order,
    racks_are_relevant,
)
from ottla.client.record import TopicPartition


class RangeAssignor:
    """Contiguous ranges of each topic."""

    name = "range"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Have nothing to say."""
        return None

    def adopt(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Have nothing to note."""

    def assign(
        self, layout: RacksOfPartitions, subscriptions: Mapping[str, MemberSubscription]
    ) -> Assignment:
        """Split each topic among those who subscribe to it."""
        order = in_member_order(subscriptions)
        shares = [
            _Share(
                topic,
                layout[topic],
                {m: subscriptions[m].rack for m in order if topic in subscriptions[m].topics},
            )
            for topic in sorted(layout)
            if layout[topic]
        ]
        assignment: Assignment = {member: [] for member in subscriptions}
        near = any(share.racks_are_relevant for share in shares)
        if near:
            _assign_near(shares, assignment)
        for share in shares:
            share.assign_ranges(lambda member, number: True, assignment)
        if near:
            for partitions in assignment.values():
                partitions.sort()
        return assignment


class _Share:
    """One topic being split."""

    def __init__(
        self, topic: str, racks: Sequence[frozenset[str]], members: Mapping[str, str | None]
    ) -> None:
        self.topic = topic
        self.racks = racks
        self.members = members
        self.left = dict.fromkeys(range(len(racks)))
        self.given = dict.fromkeys(members, 0)
        self.quota, self.extras = divmod(len(racks), len(members)) if members else (0, 0)
        self.racks_are_relevant = racks_are_relevant([rack for rack in members.values() if rack], racks)

    def is_near(self, member: str, number: int) -> bool:
        rack = self.members[member]
        return not rack or rack in self.racks[number]

    def room(self, member: str) -> int:
        return max(0, self.quota + (1 if self.extras > 0 else 0) - self.given[member])

    def give(self, member: str, numbers: Sequence[int], assignment: Assignment) -> None:
        assignment[member] += [TopicPartition(self.topic, number) for number in numbers]
        self.given[member] += len(numbers)
        if self.given[member] > self.quota:
            self.extras -= 1
        for number in numbers:
            del self.left[number]

    def assign_ranges(self, may_have: Callable[[str, int], bool], assignment: Assignment) -> None:
        for member in self.members:
            fit = [number for number in self.left if may_have(member, number)][: self.room(member)]
            if fit:
                self.give(member, fit, assignment)


def _assign_near(shares: Sequence[_Share], assignment: Assignment) -> None:
    """Give partitions to members of their racks; topics alike in subscribers and size in step with each other."""
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Share]] = {}
    for share in shares:
        # Racks are only looked at where some member has one.
        size = len(share.racks) if any(share.members.values()) else 0
        alike.setdefault((tuple(share.members.items()), size), []).append(share)
    for (members, size), group in alike.items():
        if len(group) > 1:
            _assign_in_step([member for member, _ in members], size, group, assignment)
        elif group[0].racks_are_relevant:
            group[0].assign_ranges(group[0].is_near, assignment)


def _assign_in_step(members: list[str], size: int, group: Sequence[_Share], assignment: Assignment) -> None:
    waiting = dict.fromkeys(members)
    for number in range(size):
        chosen = next(
            (m for m in waiting if all(each.is_near(m, number) and each.room(m) > 0 for each in group)), None
        )
        if chosen is None:
            continue
        for each in group:
            each.give(chosen, [number], assignment)
        if not any(each.room(chosen) > 0 for each in group):
            del waiting[chosen]
            if not waiting:
                return
