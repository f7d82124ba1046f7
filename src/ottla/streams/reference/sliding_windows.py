"""Aggregates over sliding windows: one for each different set of records that are no further apart than `difference`.

Which windows there are is Kafka Streams' way. A record at t asks for the window that ends with it, [t - difference, t];
for the one that begins behind it, [t + 1, t + 1 + difference], once there is a record in that; and for the one that
begins behind the record before it, if this one is in there. A window that is new takes over what is in its neighbour.
Updates flow out for the windows that are there, the newest first, then for the new ones.

A record earlier than `difference` shares the window [0, difference] with its likes, since none begins before 0.

A window is closed once stream time is beyond its end and the grace: it takes no more records, and a record all of whose
windows would be closed is dropped.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.streams.plan.aggregates import Aggregate, Cogroup
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.fold import Fold
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.time_windows import NOT_YET
from ottla.streams.windows import SlidingWindow


class Pane(NamedTuple):
    """What is in a window: its aggregate, and the time of the latest record in it."""

    aggregate: Any
    latest: int


class SlidingWindows(Operator):
    """Windows by key: those of a key are start → pane."""

    def __init__(self, node: Aggregate | Cogroup) -> None:
        assert isinstance(node.window, SlidingWindow)
        self._span, self._grace = node.window.difference_ms, node.window.grace_ms
        self._key = node.inputs[0].key
        self._fold = Fold(node)
        self._on_close = isinstance(node, Aggregate) and node.emit == "close"
        self._now = NOT_YET
        self._keys: dict[bytes, Any] = {}
        self._panes: dict[bytes, dict[int, Pane]] = {}
        self._given_out: set[tuple[bytes, int]] = set()

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Add a record to the windows around it, and make those that it asks for."""
        if change.key is None or change.value is None:
            return ()
        self._now = max(self._now, change.timestamp)
        at = key_bytes(self._key, change.key)
        self._keys[at] = change.key
        panes = self._panes.setdefault(at, {})
        self._out: list[Change] = []
        if not self._is_closed(change.timestamp):
            if change.timestamp < self._span:
                self._early(side, change, panes)
            else:
                self._usual(side, change, panes)
        if self._on_close:
            self._out = self._closed(change)
        # The latest record that is not too late may take over what is in a window that began two spans before it.
        oldest = self._now - self._grace - 3 * self._span
        self._panes[at] = {start: pane for start, pane in panes.items() if start >= oldest}
        return self._out

    def _is_closed(self, start: int) -> bool:
        return start + self._span + self._grace < self._now

    def _usual(self, side: int, change: Change, panes: dict[int, Pane]) -> None:
        time, span = change.timestamp, self._span
        there = dict(panes)
        # The newest window with the record and something later in it, and the newest that ends before the record.
        after = max((start for start in there if time - span < start <= time), default=None)
        before = max((start for start in there if time - 2 * span <= start < time - span), default=None)
        ending = there.get(time - span)
        for start in sorted((each for each in there if time - span <= each <= time), reverse=True):
            self._add(side, change, panes, start, there[start])
        if ending is not None and ending.latest >= time:
            return  # a record was at this very time, and all windows are there
        previous = None
        if before is not None:
            previous = there[before].latest
        elif ending is not None:
            previous = ending.latest
        if previous is not None and previous + 1 not in there and previous + 1 + span >= time:
            self._add(side, change, panes, previous + 1, None)
        if ending is None:
            neighbour = there[before] if before is not None and there[before].latest >= time - span else None
            self._add(side, change, panes, time - span, neighbour)
        if after is not None:
            self._open_behind(change, panes, there, there[after])

    def _early(self, side: int, change: Change, panes: dict[int, Pane]) -> None:
        time = change.timestamp
        there = dict(panes)
        shared = there.get(0)
        later = None
        for start in sorted(each for each in there if 0 < each <= time):
            later = there[start]
            self._add(side, change, panes, start, later)
        if later is None:
            later = shared
        if later is not None:
            self._open_behind(change, panes, there, later)
        if shared is not None and shared.latest < time and shared.latest + 1 not in there:
            self._add(side, change, panes, shared.latest + 1, None)
        self._add(side, change, panes, 0, shared)

    def _add(
        self, side: int, change: Change, panes: dict[int, Pane], start: int, before: Pane | None
    ) -> None:
        """Put a record into a window in which `before` was, unless it is closed."""
        if self._is_closed(start):
            return
        so_far, latest = (None, change.timestamp) if before is None else before
        new = self._fold.add(side, change.key, change.value, so_far)
        self._settle(change, panes, start, Pane(new, max(latest, change.timestamp)))

    def _open_behind(
        self, change: Change, panes: dict[int, Pane], there: dict[int, Pane], later: Pane
    ) -> None:
        """Make the window that begins behind a record, if there is something in it: what is in `later`."""
        if change.timestamp + 1 not in there and later.latest > change.timestamp:
            self._settle(change, panes, change.timestamp + 1, later)

    def _settle(self, change: Change, panes: dict[int, Pane], start: int, pane: Pane) -> None:
        old = panes.pop(start, Pane(None, 0)).aggregate
        if pane.aggregate is not None:
            panes[start] = pane
        key = (change.key, start, start + self._span)
        self._out.append(change._replace(key=key, value=pane.aggregate, old=old, timestamp=pane.latest))

    def _closed(self, change: Change) -> list[Change]:
        due = sorted(
            (start, at)
            for at, panes in self._panes.items()
            for start in panes
            if self._is_closed(start) and (at, start) not in self._given_out
        )
        self._given_out.update((at, start) for start, at in due)
        out = []
        for start, at in due:
            pane, key = self._panes[at][start], (self._keys[at], start, start + self._span)
            out.append(change._replace(key=key, value=pane.aggregate, old=None, timestamp=pane.latest))
        return out
