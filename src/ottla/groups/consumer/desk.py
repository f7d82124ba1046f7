"""What the commands on consumer groups work with: the shelf, the engine for regular expressions, and timers.

T1  A member is heard from within its session, or it is out.
T2  A member gives up what it is told to within its rebalance timeout, or it is out. One that has is not late when the
    time is up: its timer is not cancelled before, since the journal may refuse the record that says so.
T3  A classic member joins within its rebalance timeout once it is told to, and then syncs, or it is out. It has joined
    once the journal has taken the records of that.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from ottla.groups.assignors.table import offered
from ottla.groups.consumer.digest import Digests
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.shelf import Shelf, TimerKey
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

# Compiles a regular expression into a test of whole names; ValueError says why it is none.
Match = Callable[[str], Callable[[str], bool]]


class Desk:
    """One partition's consumer groups, as commands see them."""

    __slots__ = ("_joined", "arrivals", "assignors", "digests", "match", "matching", "shelf")

    def __init__(self, shelf: Shelf, match: Match) -> None:
        self.shelf = shelf
        self.match = match
        self.matching: dict[str, Any] = {}  # by group: the names that are being held against its expressions
        self.digests = Digests(shelf.topics)
        self.arrivals = Arrivals(shelf)
        self._joined: tuple[KeyedRecord, TimerKey] | None = None  # whose timer ends with this record
        self.assignors = offered(shelf.values["group.consumer.assignors"])

    @property
    def size_max(self) -> int:
        """How many members a group may have."""
        return cast(int, self.shelf.values["group.consumer.max.size"])

    def find(self, group_id: str) -> ConsumerGroup:
        """Return a group; GROUP_ID_NOT_FOUND when there is none, or it is of another kind."""
        group = self.shelf.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def topic_ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of those topics that exist."""
        find = self.shelf.topics.find
        return frozenset(facts.id for name in names if (facts := find(name)) is not None)

    def await_heartbeat(self, group_id: str, member_id: str, now: int, timeout_ms: int | None = None) -> None:
        """Give a member a whole session to be heard from again; None for the length that the group has set."""
        if timeout_ms is None:
            timeout_ms = cast(int, self.shelf.config(group_id, "consumer.session.timeout.ms"))
        self.shelf.timers.set(_key(group_id, "session", member_id), now + timeout_ms)

    def await_revocation(self, group_id: str, member: Member, now: int) -> None:
        """Give a member its rebalance timeout to let partitions go."""
        self.shelf.timers.set(_key(group_id, "rebalance", member.id), now + member.rebalance_timeout_ms)

    def await_join(self, group_id: str, member: Member, now: int) -> None:
        """Give a classic member its rebalance timeout to join, counted from when it was first told to."""
        key = _key(group_id, "join", member.id)
        if key not in self.shelf.timers:
            self.shelf.timers.set(key, now + member.rebalance_timeout_ms)

    def await_sync(self, group_id: str, member_id: str, now: int, timeout_ms: int) -> None:
        """Give a classic member that has joined some time to fetch its assignment."""
        self.shelf.timers.set(_key(group_id, "sync", member_id), now + timeout_ms)

    def has_joined(self, group_id: str, member_id: str, records: Sequence[KeyedRecord]) -> None:
        """Wait no longer for a classic member to join, once these records of that are applied."""
        if records:
            self._joined = records[0], _key(group_id, "join", member_id)
        else:
            self.cancel(group_id, member_id, "join")

    def applied(self, record: KeyedRecord) -> None:
        """Cancel the timer that ends with this record."""
        joined = self._joined
        if joined is not None and joined[0] is record:
            self.shelf.timers.cancel(joined[1])
            self._joined = None

    def cancel(self, group_id: str, member_id: str, what: str) -> None:
        """Cancel one of a member's timers."""
        self.shelf.timers.cancel(_key(group_id, what, member_id))

    def await_resolution(self, group_id: str, now: int) -> None:
        """Let the regular expressions of a group be resolved, once the command that asks for it is done."""
        self.shelf.timers.set(_key(group_id, "regex", ""), now)

    def awaits_resolution(self, group_id: str) -> bool:
        """Whether the regular expressions of a group are about to be resolved."""
        return _key(group_id, "regex", "") in self.shelf.timers


class Arrivals:
    """Knows in which version of the metadata a topic last came in that was not there before."""

    __slots__ = ("_names", "_seen", "_shelf", "_version")

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._names: frozenset[str] | None = None
        self._seen = self._version = -1

    @property
    def version(self) -> int:
        """That version; the first that was looked at, when nothing has come since."""
        self.look()
        return self._version

    def look(self) -> int:
        """Compare all names with those last seen, if the metadata has changed since; return its version."""
        topics = self._shelf.topics
        if self._seen != topics.version:
            names = frozenset(topics.names())
            if self._names is None or not names <= self._names:
                self._version = topics.version
            self._seen, self._names = topics.version, names
        return self._seen


def no_engine(pattern: str) -> Callable[[str], bool]:
    """Refuse every regular expression: there is nothing at hand that could read it."""
    raise ValueError("this coordinator has no engine for regular expressions")


def _key(group_id: str, what: str, member_id: str) -> TimerKey:
    return "consumer", group_id, what, member_id
