"""Aggregates over sessions.

A record makes a session of its own, [t, t], and takes in those of its key that are no further away than the gap: a
tombstone flows out for each of them, then the new session. A session is closed once stream time is beyond its end, the
gap and the grace, and out of reach from then on; a record whose session would be closed is dropped. The time of a
result is the end of its session.
"""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.aggregates import Aggregate, Cogroup
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.fold import Fold
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.time_windows import NOT_YET
from ottla.streams.windows import SessionWindow

# (start, end)
Span = tuple[int, int]


class SessionWindows(Operator):
    """Sessions by key: those of a key are (start, end) → aggregate."""

    def __init__(self, node: Aggregate | Cogroup) -> None:
        assert isinstance(node.window, SessionWindow)
        self._gap, self._patience = node.window.gap_ms, node.window.gap_ms + node.window.grace_ms
        self._key = node.inputs[0].key
        self._fold = Fold(node)
        self._on_close = isinstance(node, Aggregate) and node.emit == "close"
        self._now = NOT_YET
        self._keys: dict[bytes, Any] = {}
        self._sessions: dict[bytes, dict[Span, Any]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Add a record to the session that it makes, makes longer, or makes one of several."""
        if change.key is None or change.value is None:
            return ()
        self._now = max(self._now, change.timestamp)
        at = key_bytes(self._key, change.key)
        self._keys[at] = change.key
        time = change.timestamp
        near = sorted(
            (
                each
                for each in self._sessions.get(at, {})
                if each[0] <= time + self._gap and each[1] >= time - self._gap and not self._is_closed(each)
            ),
            key=lambda each: (each[1], each[0]),
        )
        span = (min([time, *(each[0] for each in near)]), max([time, *(each[1] for each in near)]))
        out = []
        if not self._is_closed(span):
            out = self._gathered(side, change, self._sessions.setdefault(at, {}), near, span)
        closed = self._closed(change)
        return closed if self._on_close else out

    def _is_closed(self, span: Span) -> bool:
        return span[1] + self._patience < self._now

    def _gathered(
        self, side: int, change: Change, sessions: dict[Span, Any], near: list[Span], span: Span
    ) -> list[Change]:
        aggregate, old = None, None
        for each in near:
            aggregate = self._fold.merge(change.key, aggregate, sessions[each])
        out = []
        for each in near:
            gone = sessions.pop(each)
            if each == span == (change.timestamp, change.timestamp):
                old = gone  # another record at the same time: the session stays what it is
            else:
                out.append(self._result(change, each, None, gone))
        new = self._fold.add(side, change.key, change.value, aggregate)
        if new is not None:
            sessions[span] = new
        return [*out, self._result(change, span, new, old)]

    def _result(self, change: Change, span: Span, value: Any, old: Any) -> Change:
        return change._replace(key=(change.key, *span), value=value, old=old, timestamp=span[1])

    def _closed(self, change: Change) -> list[Change]:
        due = sorted(
            (span[1], at, span)
            for at, sessions in self._sessions.items()
            for span in sessions
            if self._is_closed(span)
        )
        return [
            self._result(change._replace(key=self._keys[at]), span, self._sessions[at].pop(span), None)
            for _, at, span in due
        ]
