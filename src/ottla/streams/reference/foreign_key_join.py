"""A table joined with the table that its rows refer to, by a key taken out of them.

A row of the left subscribes to the row that it refers to, and hears of it at once and whenever that changes. What flows
out when is Kafka Streams': also deletions of results that never were, where it cannot know better. There every answer
bears the version of the row that asked; here no answer comes late, so there is none to be told apart.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from ottla.streams.plan.joins import ForeignKeyJoin
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.stateless import called


class Ask(Enum):
    """What a subscription wants to hear."""

    ANSWER = auto()
    ANSWER_IF_THERE = auto()
    FORGET = auto()
    FORGET_AND_ANSWER = auto()


class JoinByForeignKey(Operator):
    """Side 0 is the table whose rows refer to those of side 1."""

    def __init__(self, node: ForeignKeyJoin) -> None:
        left, right = node.inputs
        self._left_key, self._right_key = left.key, right.key
        self._is_left = node.how == "left"
        self._extractor = called(node.extractor, node)
        self._joiner = Called(node.joiner, node.name, key=left.key, left=left.value, right=right.value)
        self._referred: dict[bytes, Any] = {}  # left key → the right key it refers to, which may be None
        self._rows: dict[bytes, tuple[Any, int]] = {}  # right key → value, timestamp
        self._subscribers: dict[bytes, dict[bytes, tuple[Any, Any]]] = {}  # right key → left key → key, value
        self._results: dict[bytes, Any] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Take a change of either table."""
        if change.key is None:
            return ()
        return self._left(change) if side == 0 else self._right(change)

    def _left(self, change: Change) -> list[Change]:
        at = key_bytes(self._left_key, change.key)
        if change.value is None and at not in self._referred:
            return []
        before, now = self._referred.pop(at, None), None
        if change.value is not None:
            now = self._referred[at] = self._extractor(change.key, change.value)
        out = []
        for key, ask in self._asked(before, now, is_there=change.value is not None):
            out += self._subscribed(change, at, key, ask)
        return out

    def _asked(self, before: Any, now: Any, *, is_there: bool) -> list[tuple[Any, Ask]]:
        same = before is not None and now is not None and self._at(before) == self._at(now)
        if self._is_left:
            left = [(before, Ask.FORGET)] if before is not None and not same else []
            return [*left, (now, Ask.ANSWER)]
        if not is_there or now is None:
            return [(before, Ask.FORGET_AND_ANSWER)] if before is not None else []
        if before is None or same:
            return [(now, Ask.ANSWER_IF_THERE)]
        return [(before, Ask.FORGET), (now, Ask.ANSWER)]

    def _at(self, right_key: Any) -> bytes:
        return key_bytes(self._right_key, right_key)

    def _subscribed(self, change: Change, at: bytes, key: Any, ask: Ask) -> list[Change]:
        row, time = None, change.timestamp
        if key is not None:
            subscribers = self._subscribers.setdefault(self._at(key), {})
            subscribers.pop(at, None)
            if ask in (Ask.ANSWER, Ask.ANSWER_IF_THERE):
                subscribers[at] = (change.key, change.value)
            row, row_time = self._rows.get(self._at(key), (None, time))
            time = max(time, row_time)
        if ask is Ask.FORGET or (ask is Ask.ANSWER_IF_THERE and row is None):
            return []
        right = None if ask is Ask.FORGET_AND_ANSWER else row
        return [self._answered(change._replace(timestamp=time), at, change.value, right)]

    def _right(self, change: Change) -> list[Change]:
        at = self._at(change.key)
        self._rows.pop(at, None)
        if change.value is not None:
            self._rows[at] = (change.value, change.timestamp)
        subscribers = sorted(self._subscribers.get(at, {}).items(), key=lambda each: each[0])
        return [
            self._answered(change._replace(key=key), left_at, left, change.value)
            for left_at, (key, left) in subscribers
        ]

    def _answered(self, change: Change, at: bytes, left: Any, right: Any) -> Change:
        new = None
        if left is not None and (right is not None or self._is_left):
            new = self._joiner(change.key, left, right)
        old = self._results.pop(at, None)
        if new is not None:
            self._results[at] = new
        return change._replace(value=new, old=old)
