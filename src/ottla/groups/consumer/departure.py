"""Members that go, by their own will or because they were not heard from.

Q1  Who goes takes nothing along: what it held is free in the same step, and the group enters a new epoch.
Q2  A regular expression goes with the last member that wants it.
Q3  When only classic members are left, the group becomes a classic one again, if `group.consumer.migration.policy`
    lets it.
"""

from collections.abc import Sequence

from ottla.groups.consumer import migration, records, subscription
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.subscription import Resolved, tally
from ottla.replicated.keyed import KeyedRecord


def fence(desk: Desk, group: ConsumerGroup, members: Sequence[Member], now: int) -> list[KeyedRecord]:
    """Return the records that let members go; none when nobody does."""
    if not members:
        return []
    if migration.may_downgrade(desk, group, members):
        return migration.downgrade(desk, group, now, leaving=members)
    out = [record for member in members for record in records.member_gone(group.id, member.id)]
    counts = dict(group.counts)
    wanted = dict(group.regexes)
    for member in members:
        subscription.add(counts, member.topics, names=-1)
        tally(wanted, member.regex, -1)
    for pattern in group.regexes.keys() - wanted.keys():
        out.append(records.regex_gone(group.id, pattern))
        subscription.add(counts, group.resolved.get(pattern, Resolved()).topics, regexes=-1)
    out.append(records.epoch(group.id, group.epoch + 1, desk.digests.of(counts)))
    return out
