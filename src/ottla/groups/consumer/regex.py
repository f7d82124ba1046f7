"""Subscriptions by regular expression: which topics they stand for, found apart from the heartbeats that need it.

X1  What an expression stands for is recorded, so the next coordinator knows it too.
X2  All expressions of a group are resolved together, not more often than every ten seconds; that is when one of them
    is new, when topics were created since, or when `group.consumer.regex.refresh.interval.ms` is over.
    Where many names are to be held against many expressions that is done in steps, one at a time, so that nobody waits
    long for it; what is found counts from the last of them on.
X3  Resolving changes the epoch of the group only when it changes what its members read.
"""

from collections.abc import Iterator
from enum import Enum

from ottla.groups.consumer import records, subscription
from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.subscription import Resolved, tally
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

_REFRESH_INTERVAL_MIN_MS = 10_000
# Of a step of the work, in characters of names times the size of an expression: 10 ms, and mostly much less.
_STEP_COST = 10_000_000
_NAME_COST = 1_000


class RegexChange(Enum):
    """What became of a member's regular expression; whether topics are known for the new one."""

    NONE = 0
    UNRESOLVED = 1
    RESOLVED = 2


def follow(
    desk: Desk, group: ConsumerGroup, before: Member, after: Member, now: int, out: list[KeyedRecord]
) -> RegexChange:
    """Take up a member's new expression, drop its old one if it was the last to want it, and see to refreshing."""
    change, is_new = RegexChange.NONE, False
    if before.regex != after.regex:
        change, is_new = _exchange(desk, group, before, after, out)
    if not is_new and not group.regexes:
        return change
    if not desk.awaits_resolution(group.id) and _must_resolve(desk, group, before, after, now, is_new):
        desk.await_resolution(group.id, now)
    return change


def _exchange(
    desk: Desk, group: ConsumerGroup, before: Member, after: Member, out: list[KeyedRecord]
) -> tuple[RegexChange, bool]:
    is_new = bool(after.regex) and after.regex not in group.regexes
    if after.regex and is_new:
        try:
            desk.match(after.regex)
        except ValueError as error:
            message = f"SubscribedTopicRegex `{after.regex}` is not a valid regular expression: {error}."
            raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    if before.regex and group.regexes.get(before.regex) == 1:
        out.append(records.regex_gone(group.id, before.regex))
    if after.regex:
        known = not is_new and after.regex in group.resolved
        return RegexChange.RESOLVED if known else RegexChange.UNRESOLVED, is_new
    return RegexChange.RESOLVED if before.regex else RegexChange.UNRESOLVED, False


def _must_resolve(
    desk: Desk, group: ConsumerGroup, before: Member, after: Member, now: int, is_new: bool
) -> bool:
    last = next(iter(group.resolved.values()), None)
    if last is not None and last.timestamp <= now <= last.timestamp + _REFRESH_INTERVAL_MIN_MS:
        return False
    wanted = dict(group.regexes)
    tally(wanted, before.regex, -1)
    tally(wanted, after.regex, 1)
    if not wanted:
        return False
    if is_new or last is None or len(wanted) != len(group.resolved) or last.version < desk.arrivals.version:
        return True
    interval_ms: int = desk.shelf.values["group.consumer.regex.refresh.interval.ms"]
    return not last.timestamp <= now <= last.timestamp + interval_ms


def resolve(desk: Desk, group: ConsumerGroup, now: int) -> list[KeyedRecord]:
    """Find out what the expressions of a group stand for, and let its epoch rise when that is news."""
    work = desk.matching.pop(group.id, None) or _Matching(desk, group)
    if not work.step():
        desk.matching[group.id] = work
        desk.await_resolution(group.id, now + 1)
        return []
    version = work.version
    counts = dict(group.counts)
    out: list[KeyedRecord] = []
    changed = False
    for pattern, topics in work.found.items():
        if pattern not in group.regexes:
            continue  # nobody wants it any more
        before = group.resolved.get(pattern, Resolved()).topics
        if before != topics:
            changed = True
            subscription.add(counts, before, regexes=-1)
            subscription.add(counts, topics, regexes=1)
        out.append(records.regex(group.id, pattern, topics, version, now))
    metadata_hash = desk.digests.of(counts)
    if changed or metadata_hash != group.metadata_hash:
        out.append(records.epoch(group.id, group.epoch + 1, metadata_hash))
        group.refreshed = version, group.epoch + 1
    return out


class _Matching:
    """All names held against all expressions of a group, in steps."""

    __slots__ = ("_rest", "found", "version")

    def __init__(self, desk: Desk, group: ConsumerGroup) -> None:
        self.version = desk.arrivals.look()
        self.found: dict[str, frozenset[str]] = {}
        self._rest = self._match(desk, tuple(group.regexes), tuple(desk.shelf.topics.names()))

    def step(self) -> bool:
        """Go on for a while; say whether all is done."""
        cost = 0
        for each in self._rest:
            cost += each
            if cost > _STEP_COST:
                return False
        return True

    def _match(self, desk: Desk, patterns: tuple[str, ...], names: tuple[str, ...]) -> Iterator[int]:
        """Yield what each piece of the work has cost."""
        for pattern in patterns:
            found = set[str]()
            try:
                matches = desk.match(pattern)
            except ValueError:
                matches = None  # it was valid for whoever took it in; here it stands for nothing
            yield _STEP_COST // 2  # to compile it, where that was not done lately
            if matches is not None:
                size = getattr(matches, "size", 1)
                for name in names:
                    if matches(name):
                        found.add(name)
                    yield size * len(name) + _NAME_COST
            self.found[pattern] = frozenset(found)
