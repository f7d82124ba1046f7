"""Offsets expire, and a group that is left with nothing goes: one timer a group, and no walk over all of them.

P1  An offset expires `offsets.retention.minutes` after its commit, or after its group became empty; never while a
    member reads its topic, nor while a transaction holds something for it.
P2  A group without members and without offsets is removed, at the earliest one check interval after it was first
    seen so, so that a group in the making is left alone.
P3  A group's timer is due no later than any of its offsets can expire. What can not expire as things are is looked
    at again when it might, but not sooner than after `offsets.retention.check.interval.ms`.

A record carries no time to begin from, so a group that a record speaks of is due at once, and is given its real
deadline when it is looked at.
"""

from ottla.groups.group import Group, Kind
from ottla.groups.offset_ledger import Ledger
from ottla.groups.offset_records import Committed, Place, tombstone
from ottla.groups.shelf import Shelf, TimerKey
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import KeyedRecord
from ottla.replicated.steps import STEP_BYTES

# How many offsets one step may remove, if their records have no more than STEP_BYTES.
TOMBSTONES_MAX = 1_000
_TOMBSTONE_BYTES = 50  # without names
_AT_ONCE = 0
_SOON_MS = 100
_MINUTE_MS = 60_000


class Expiry:
    """When each group is to be looked at; `_due` holds what the timers were set to."""

    __slots__ = ("_due", "_ledger", "_seen", "_shelf")

    def __init__(self, shelf: Shelf, ledger: Ledger) -> None:
        self._shelf = shelf
        self._ledger = ledger
        self._due: dict[str, int] = {}
        # Groups that were looked at before, and may go when they are found with nothing.
        self._seen: set[str] = set()

    def group_seen(self, group_id: str) -> None:
        """A record spoke of a group: look at it if it is new, and no more if it is gone."""
        if group_id not in self._shelf.groups:
            self._seen.discard(group_id)
            if self._due.pop(group_id, None) is not None:
                self._shelf.timers.cancel(_key(group_id))
        elif group_id not in self._due:
            self._look(group_id, _AT_ONCE)

    def offset_committed(self, place: Place, committed: Committed) -> None:
        """An offset was committed: look at the group when it expires, if not sooner."""
        due = self._due.get(place.group)
        if due is None:
            self._look(place.group, _AT_ONCE)
            return
        expires = self._expires_at(self._shelf.groups[place.group], committed, committed.commit_timestamp)
        if expires is not None and expires < due:
            self._look(place.group, expires)

    def offset_removed(self, place: Place) -> None:
        """An offset is gone: if it was the last, the group may go too."""
        if place.group in self._shelf.groups and not self._ledger.topics(place.group):
            self._seen.discard(place.group)
            self._look(place.group, _AT_ONCE)

    def expire(self, group_id: str, now: int) -> Decision[None]:
        """Look at a group."""
        self._due.pop(group_id, None)
        group = self._shelf.groups.get(group_id)
        if group is None or group.kind is Kind.SHARE:
            self._seen.discard(group_id)
            return Decision(None)
        interval_ms: int = self._shelf.values["offsets.retention.check.interval.ms"]
        records, due = self._expired(group, now, now + interval_ms)
        self._shelf.tally.expirations += len(records)
        if due is None and group.state == "Empty" and not self._ledger.open_places(group_id):
            if records or group_id in self._seen:
                records += group.tombstones()
        if due is None or records:
            # Should the journal refuse the records, they are asked for again.
            due = min(due or now + interval_ms, now + interval_ms)
        self._seen.add(group_id)
        self._look(group_id, due)
        return Decision(None, tuple(records))

    def _expired(self, group: Group, now: int, next_check: int) -> tuple[list[KeyedRecord], int | None]:
        """Return the tombstones of what has expired, and when to look at what is left; None if that is nothing."""
        records: list[KeyedRecord] = []
        due = None
        size_bytes = 0
        for topic, partitions in self._ledger.topics(group.id).items():
            is_read = group.subscribes_to(topic)
            tombstone_bytes = _TOMBSTONE_BYTES + len(group.id) + len(topic)
            for partition, committed in partitions.items():
                if len(records) == TOMBSTONES_MAX or size_bytes > STEP_BYTES:
                    return records, now + _SOON_MS
                place = Place(group.id, topic, partition)
                expires = None if is_read else self._expires_at(group, committed, now)
                if expires is None or self._ledger.is_open(place):
                    expires = max(committed.commit_timestamp + self._retention_ms, next_check)
                elif expires <= now:
                    records.append(tombstone(place))
                    size_bytes += tombstone_bytes
                    continue
                due = expires if due is None else min(due, expires)
        return records, due

    def _expires_at(self, group: Group, committed: Committed, now: int) -> int | None:
        expires = group.expires_at(now, committed.commit_timestamp, self._retention_ms)
        if expires is not None and committed.expire_timestamp is not None:
            return committed.expire_timestamp
        return expires

    @property
    def _retention_ms(self) -> int:
        minutes: int = self._shelf.values["offsets.retention.minutes"]
        return minutes * _MINUTE_MS

    def _look(self, group_id: str, due: int) -> None:
        self._due[group_id] = due
        self._shelf.timers.set(_key(group_id), due)


def _key(group_id: str) -> TimerKey:
    return ("offsets", group_id, "check", "")
