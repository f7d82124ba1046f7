"""A group that is being changed: what it becomes, and what is to be said, recorded and timed along with that.

D1  The group on the shelf stays as it is until the draft is put in its place: at once when there is nothing to record,
    else when the record is applied. A record that the journal refuses leaves no trace.
D2  Nobody who waits is forgotten: a request is answered when it is displaced, or when its member goes.
"""

from collections.abc import Mapping
from typing import Any

from ottla.groups.classic.answers import dismissals, refused_join, refused_sync
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.shelf import TimerKey
from ottla.replicated.keyed import Answer, KeyedRecord
from ottla.wire.errors import ErrorCode


class Draft:
    """A changed group in the making; `timers` maps a key to its new deadline, or to None when it is cancelled."""

    __slots__ = ("answers", "group", "now", "records", "timers", "values")

    def __init__(self, group: ClassicGroup, values: Mapping[str, Any], now: int) -> None:
        self.group = group
        self.values = values
        self.now = now
        self.records: list[KeyedRecord] = []
        self.answers: list[Answer] = []
        self.timers: dict[TimerKey, int | None] = {}

    def say(self, *answers: Answer) -> None:
        """Answer those who wait."""
        self.answers += answers

    def record(self, record: KeyedRecord) -> None:
        """Let what the group becomes be recorded."""
        self.records.append(record)

    def set_timer(self, what: str, delay_ms: int, member_id: str = "") -> None:
        """Let a timer of the group be due after a delay."""
        self.timers[self._key(what, member_id)] = self.now + delay_ms

    def cancel_timer(self, what: str, member_id: str = "") -> None:
        """Let a timer of the group be due never."""
        self.timers[self._key(what, member_id)] = None

    def await_heartbeat(self, member: Member) -> None:
        """Give a member a whole session to be heard from again."""
        self.set_timer("heartbeat", member.session_timeout_ms, member.id)

    def put(self, member: Member) -> None:
        """Put a member in place of what it was, and answer those of its requests that newer ones displace."""
        old = self.group.members.get(member.id)
        if old is not None and old.join is not None and member.join not in (None, old.join):
            self.say(refused_join(old.join, ErrorCode.REBALANCE_IN_PROGRESS, old.id))
        if old is not None and old.sync is not None and member.sync not in (None, old.sync):
            self.say(refused_sync(old.sync, ErrorCode.REBALANCE_IN_PROGRESS))
        self.group.put(member)

    def drop(self, member_id: str) -> None:
        """Let a member go. One that waits learns that it is none any more, and may join again."""
        member = self.group.remove(member_id)
        self.cancel_timer("heartbeat", member_id)
        if member is not None:
            self.say(*dismissals(member, ErrorCode.UNKNOWN_MEMBER_ID))

    def _key(self, what: str, member_id: str) -> TimerKey:
        return "classic", self.group.id, what, member_id
