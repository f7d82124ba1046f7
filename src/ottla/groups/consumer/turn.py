"""One command's turn with a group: the steps it may take towards a new epoch, and the records they leave.

S1  The group itself does not change here: what it becomes is in the records. Each step is told what the ones before
    it have made of the member.
S2  A target assignment is computed by whoever comes first when the group has a new epoch, but not more often than every
    `consumer.assignment.interval.ms`.
"""

from ottla.groups.assignors.spec import Assignment, Subscriber
from ottla.groups.assignors.table import ASSIGNORS
from ottla.groups.consumer import records
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.group import ConsumerGroup, preferred
from ottla.groups.consumer.member import Member, MemberState
from ottla.groups.consumer.reconciliation import Goal, Owned, reconcile
from ottla.groups.consumer.regex import RegexChange, follow
from ottla.groups.consumer.subscription import is_homogeneous, tally
from ottla.replicated.keyed import KeyedRecord


class Turn:
    """The steps of one command; `records` is what they have left so far."""

    __slots__ = ("_desk", "_group", "_now", "records")

    def __init__(self, desk: Desk, group: ConsumerGroup, now: int, out: list[KeyedRecord]) -> None:
        self._desk = desk
        self._group = group
        self._now = now
        self.records = out

    def subscribe(self, before: Member, after: Member) -> tuple[bool, RegexChange]:
        """Note who a member is now; return whether it names other topics, and what became of its expression."""
        renamed = False
        if after is not before and after != before:
            self.records.append(records.subscription(self._group.id, after))
            renamed = after.topics != before.topics
        return renamed, follow(self._desk, self._group, before, after, self._now, self.records)

    def enter_epoch(self, before: Member, after: Member, *, news: bool) -> tuple[int, bool | None]:
        """Let the group's epoch rise when there is news, or when its topics have changed.

        Returns the epoch, and whether all members then want the same; None if that is as it was.
        """
        desk, group = self._desk, self._group
        version = desk.shelf.topics.version
        if not news and group.is_fresh(version):
            return group.epoch, None
        regexes = dict(group.regexes)
        tally(regexes, before.regex, -1)
        tally(regexes, after.regex, 1)
        counts = group.counts_with(before, after)
        metadata_hash = desk.digests.of(counts)
        is_newcomer = after.id not in group.members and after.instance_id not in group.statics
        homogeneous = is_homogeneous(regexes, counts, len(group.members) + is_newcomer)
        epoch = group.epoch
        if news or metadata_hash != group.metadata_hash:
            epoch += 1
            self.records.append(records.epoch(group.id, epoch, metadata_hash))
        group.refreshed = version, epoch
        if group.has_topics_record:
            self.records.append(records.topics_gone(group.id))
        return epoch, homogeneous

    def assign(
        self, before: Member, after: Member, epoch: int, homogeneous: bool | None
    ) -> tuple[int, Assignment]:
        """Compute the target assignment if it is behind and may be; return its epoch, and the member's part of it."""
        desk, group = self._desk, self._group
        if group.assignment_epoch >= epoch or not self._may_assign():
            return group.assignment_epoch, group.target(after)
        if homogeneous is None:
            homogeneous = is_homogeneous(group.regexes, group.counts, len(group.members))
        wishes = dict(group.assignors)
        tally(wishes, before.assignor, -1)
        tally(wishes, after.assignor, 1)
        assignor = ASSIGNORS.get(preferred(wishes, desk.assignors[0]), ASSIGNORS[desk.assignors[0]])
        members = self._subscribers(after)
        topics = desk.shelf.topics
        partitions = {
            topic_id: facts.partitions
            for topic_id in frozenset[bytes]().union(*(member.topics for member in members.values()))
            if (facts := topics.by_id(topic_id)) is not None
        }
        targets = assignor(members, partitions, homogeneous)
        for member_id in members:
            target = targets.get(member_id, {})
            if target != group.targets.get(member_id):
                self.records.append(records.target(group.id, member_id, target))
        self.records.append(records.target_epoch(group.id, epoch, self._now))
        return epoch, targets.get(after.id, {})

    def reconcile(
        self, member: Member, epoch: int, target: Assignment, owned: Owned, *, resubscribed: bool
    ) -> Member:
        """Take the member a step towards its target."""
        if not resubscribed and member.is_reconciled_to(epoch):
            return member
        desk, group = self._desk, self._group
        goal = Goal(epoch, target, desk.topic_ids(group.topics_of(member)), group.is_held)
        after = reconcile(member, goal, owned, resubscribed=resubscribed)
        if after == member:
            return member
        self.records.append(records.current(group.id, after))
        if after.classic is None and after.state is MemberState.UNREVOKED:
            desk.await_revocation(group.id, after, self._now)
        return after

    def _may_assign(self) -> bool:
        interval_ms: int = self._desk.shelf.config(self._group.id, "consumer.assignment.interval.ms")
        return self._group.may_assign(interval_ms, self._now)

    def _subscribers(self, after: Member) -> dict[str, Subscriber]:
        desk, group = self._desk, self._group
        members = dict(group.members)
        previous = group.statics.get(after.instance_id, after.id) if after.instance_id else after.id
        if previous != after.id:
            del members[previous]
        members[after.id] = after
        known: dict[frozenset[str], frozenset[bytes]] = {}
        found = {}
        for member in members.values():
            names = group.topics_of(member)
            topics = known.get(names)
            if topics is None:
                topics = known[names] = desk.topic_ids(names)
            source = previous if member is after else member.id
            found[member.id] = Subscriber(topics, group.targets.get(source, {}), member.instance_id)
        return found
