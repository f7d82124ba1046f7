"""Two streams joined: pairs of records of one key whose timestamps are near each other.

A record of the left at t meets those of the right in [t - before, t + after], one of the right those of the left in
[t - after, t + before], ends included, by time and then as they came. The time of a pair is that of the later one. Each
side is remembered for before + after + grace of its own stream time.

Of a left join a record of the left that has met nobody flows out alone, of an outer join either side's, once its window
and the grace are over by the stream time of both sides; one that comes when that is so already, at once. Those that are
due leave with the next record that is not behind stream time. A record without a value is dropped, and so is one
without a key, but on a side that may be alone.
"""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.joins import StreamJoin
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.time_windows import NOT_YET


class _Side:
    """The records of one side, and how far before and after its own time one of them looks."""

    def __init__(self, before_ms: int, after_ms: int, *, may_be_alone: bool) -> None:
        self.before_ms = before_ms
        self.after_ms = after_ms
        self.may_be_alone = may_be_alone
        self.now = NOT_YET
        self.kept: dict[bytes, list[tuple[int, Any]]] = {}


class JoinStreams(Operator):
    """Sides 0 and 1 are left and right."""

    def __init__(self, node: StreamJoin) -> None:
        left, right = node.inputs
        window = node.window
        self._key = node.key
        self._joiner = Called(node.joiner, node.name, key=node.key, left=left.value, right=right.value)
        self._sides = (
            _Side(window.before_ms, window.after_ms, may_be_alone=node.how != "inner"),
            _Side(window.after_ms, window.before_ms, may_be_alone=node.how == "outer"),
        )
        self._grace = window.grace_ms
        self._retention = window.before_ms + window.after_ms + window.grace_ms
        self._now = NOT_YET
        # Those that have met nobody yet: (time, side, key as bytes) → key and values.
        self._alone: dict[tuple[int, int, bytes], tuple[Any, list[Any]]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Let a record meet those of the other side, and remember it."""
        self._now = max(self._now, change.timestamp)
        mine = self._sides[side]
        if change.key is None:
            there = change.value is not None and mine.may_be_alone
            return [self._by_itself(change, side)] if there else []
        mine.now = max(mine.now, change.timestamp)
        if change.value is None:
            return []
        out = self._leaving(change) if change.timestamp == self._now else []
        at = key_bytes(self._key, change.key)
        pairs = self._pairs(side, change, at)
        out += pairs
        if not pairs and mine.may_be_alone:
            if self._is_over(side, change.timestamp):
                out.append(self._by_itself(change, side))
            else:
                name = (change.timestamp, side, at)
                self._alone.setdefault(name, (change.key, []))[1].append(change.value)
        if self._is_kept(mine, change.timestamp):
            mine.kept.setdefault(at, []).append((change.timestamp, change.value))
        return out

    def _is_kept(self, side: _Side, time: int) -> bool:
        return time > side.now - self._retention

    def _is_over(self, side: int, time: int) -> bool:
        return time + self._sides[side].after_ms + self._grace < self._now

    def _pairs(self, side: int, change: Change, at: bytes) -> list[Change]:
        mine, theirs = self._sides[side], self._sides[1 - side]
        theirs.kept[at] = [each for each in theirs.kept.get(at, ()) if self._is_kept(theirs, each[0])]
        earliest, latest = max(0, change.timestamp - mine.before_ms), max(0, change.timestamp + mine.after_ms)
        out = []
        for time, value in sorted(theirs.kept[at], key=lambda each: each[0]):
            if earliest <= time <= latest:
                self._alone.pop((time, 1 - side, at), None)
                left, right = (change.value, value) if side == 0 else (value, change.value)
                joined = self._joiner(change.key, left, right)
                out.append(change._replace(value=joined, timestamp=max(time, change.timestamp)))
        return out

    def _leaving(self, change: Change) -> list[Change]:
        """Those whose time to meet somebody is over: by their times, of one time the left before the right."""
        out = []
        for name in sorted(each for each in self._alone if self._is_over(each[1], each[0])):
            key, values = self._alone.pop(name)
            for value in values:
                lone = change._replace(key=key, value=value, timestamp=name[0])
                out.append(self._by_itself(lone, name[1]))
        return out

    def _by_itself(self, change: Change, side: int) -> Change:
        left, right = (change.value, None) if side == 0 else (None, change.value)
        return change._replace(value=self._joiner(change.key, left, right))
