"""Aggregates over tumbling and hopping windows.

Windows begin at multiples of the advance, none before 0. A window takes records until stream time, the latest timestamp
of records with key and value, has come to its end and its grace; then it is closed, and what comes later for it is
dropped. With emit="close" one result flows out when it closes: the earliest window first, of one time by key.
"""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.aggregates import Aggregate, Cogroup
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.fold import Fold
from ottla.streams.reference.keys import key_bytes
from ottla.streams.windows import HoppingWindow, TumblingWindow

NOT_YET = -(1 << 62)


class TimeWindows(Operator):
    """Windows of one size."""

    def __init__(self, node: Aggregate | Cogroup) -> None:
        assert isinstance(node.window, TumblingWindow | HoppingWindow)
        self._window = node.window
        self._key = node.inputs[0].key
        self._fold = Fold(node)
        self._on_close = isinstance(node, Aggregate) and node.emit == "close"
        self._now = NOT_YET
        # (start, key as bytes) → key, aggregate, timestamp
        self._rows: dict[tuple[int, bytes], tuple[Any, Any, int]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Add a record to the windows that it is in and that are open."""
        if change.key is None or change.value is None:
            return ()
        self._now = max(self._now, change.timestamp)
        window = self._window
        out = [
            self._add(side, change, start)
            for start in _starts(change.timestamp, window.size_ms, window.advance_ms)
            if not self._is_closed(start)
        ]
        return self._closed(change) if self._on_close else out

    def _is_closed(self, start: int) -> bool:
        return start + self._window.size_ms + self._window.grace_ms <= self._now

    def _add(self, side: int, change: Change, start: int) -> Change:
        at = (start, key_bytes(self._key, change.key))
        _, old, timestamp = self._rows.get(at, (None, None, change.timestamp))
        timestamp = max(timestamp, change.timestamp)
        new = self._fold.add(side, change.key, change.value, old)
        self._rows.pop(at, None)
        if new is not None:
            self._rows[at] = (change.key, new, timestamp)
        key = (change.key, start, start + self._window.size_ms)
        return change._replace(key=key, value=new, old=old, timestamp=timestamp)

    def _closed(self, change: Change) -> Iterable[Change]:
        out = []
        for at in sorted(each for each in self._rows if self._is_closed(each[0])):
            key, aggregate, timestamp = self._rows.pop(at)
            windowed = (key, at[0], at[0] + self._window.size_ms)
            out.append(change._replace(key=windowed, value=aggregate, old=None, timestamp=timestamp))
        return out


def _starts(timestamp: int, size: int, advance: int) -> Iterable[int]:
    first = max(0, timestamp - size + advance) // advance * advance
    return range(first, timestamp + 1, advance)
