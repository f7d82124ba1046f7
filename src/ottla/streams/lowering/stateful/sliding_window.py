"""Aggregates over sliding windows: one for each different set of records that are no further apart than `difference`.

A record at t is in the window that ends with it, [t - difference, t], and in that which begins behind it,
[t + 1, t + 1 + difference], as soon as another record is there; and of course in every other window around it. Which
windows exist, and in which order their updates flow out, is Kafka Streams' way: newest first, then the new ones. A
record earlier than `difference` shares the window [0, difference] with its likes, since no window begins before 0.

A window is closed once stream time is beyond its end and the grace.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.streams.lowering.stateful.fold import Fold
from ottla.streams.lowering.stateful.keycode import KeyCode
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.store import Store
from ottla.streams.lowering.stateful.timeline import Timeline

_START = struct.Struct(">q")

# An aggregate and the latest timestamp in it.
Pane = tuple[Any, int]


class SlidingWindows(Operator):
    """rows: key → (when to look at it next, {start: (aggregate, timestamp)}); timeline: rows to look at; closings:
    windows, when only final results are asked for.
    """

    stores = ("rows", "timeline", "closings")

    def __init__(
        self, fold: Fold, code: KeyCode, difference_ms: int, grace_ms: int, *, closing: bool = False
    ) -> None:
        self._fold = fold
        self._code = code
        self._difference = difference_ms
        self._grace = grace_ms
        self._closing = closing

    def open(self, stores: Mapping[str, Store]) -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._timeline = Timeline(stores["timeline"], (self._difference + self._grace) // 4)
        self._closings = Timeline(stores["closings"], (self._difference + self._grace) // 16)
        self._touched: dict[bytes, None] = {}

    def prepare(self, records: Sequence[Record]) -> None:
        """Read the rows of these records, and those whose windows will close."""
        super().prepare(records)
        if self._closing and records:
            until = max(self._timeline.now, *(record.timestamp for record in records))
            self.rows.fetch(name[: -_START.size] for name in self._closings.load(until))

    def step(self, record: Record) -> None:
        """Add a record to the windows around it, and make those that it asks for."""
        if record.at is None or record.value is None:
            return
        self._timeline.advance(record.timestamp)
        closed = self._timeline.now - self._grace
        if record.timestamp + self._difference >= closed:
            scheduled, panes = self.rows.get(record.at) or (None, {})
            visit = _Visit(self, record, panes, closed)
            if record.timestamp < self._difference:
                visit.early()
            else:
                visit.usual()
            self.rows.put(record.at, (scheduled, panes))
            self._touched[record.at] = None
        if self._closing:
            self._close(record)

    def update(self, record: Record, panes: dict[int, Pane], start: int, before: Pane, closed: int) -> None:
        """Add a record to a window that had `before` in it, if the window is open."""
        end = start + self._difference
        if end < closed:
            return
        new = self._fold.add(record, before[0])
        self.settle(record, panes, start, (new, max(record.timestamp, before[1])))

    def settle(self, record: Record, panes: dict[int, Pane], start: int, pane: Pane) -> None:
        """Give a window what is in it now."""
        assert record.at is not None
        end = start + self._difference
        if start not in panes and self._closing:
            self._closings.add(end + self._grace + 1, record.at + _START.pack(start))
        old = panes.pop(start, (None, 0))[0]
        if pane[0] is not None:
            panes[start] = pane
        if not self._closing:
            self.emit((record.key, start, end), pane[0], old, pane[1], record.headers)

    def _close(self, record: Record) -> None:
        for _, name in self._closings.pop(self._timeline.now):
            at, (start,) = name[: -_START.size], _START.unpack(name[-_START.size :])
            _, panes = self.rows.get(at) or (None, {})
            pane = panes.get(start)
            if pane is not None:
                key = (self._code.decode(at), start, start + self._difference)
                self.emit(key, pane[0], None, pane[1], record.headers)

    def finish(self) -> None:
        """Forget windows that no record can ask for any more.

        The latest record that is not too late may take over what is in a window that began two differences before it.
        """
        now, needed = self._timeline.now, self._timeline.now - self._grace - 3 * self._difference
        due = [at for _, at in self._timeline.pop(now, whole=True)]
        self.rows.fetch(due)
        for at in due:
            _, panes = self.rows.get(at) or (None, {})
            self.rows.put(at, (None, panes))
            self._touched[at] = None
        for at in self._touched:
            scheduled, panes = self.rows.get(at)
            panes = {start: pane for start, pane in panes.items() if start >= needed}
            if not panes:
                self.rows.delete(at)
                continue
            if scheduled is None:
                scheduled = max(panes) + self._grace + 3 * self._difference + 1
                self._timeline.add(scheduled, at)
            self.rows.put(at, (scheduled, panes))
        self._timeline.flush()
        self._closings.flush()


class _Visit:
    """One record among the windows of its key."""

    def __init__(self, windows: SlidingWindows, record: Record, panes: dict[int, Pane], closed: int) -> None:
        self._windows = windows
        self._record = record
        self._panes = panes
        self._closed = closed
        self._span = windows._difference
        self._right: Pane | None = None
        self._left: Pane | None = None
        self._previous: int | None = None  # the latest timestamp before the record's

    def usual(self) -> None:
        """Go through the windows from the newest to the one before the record."""
        time = self._record.timestamp
        ends_here = False
        # What was there before: windows that this visit makes are not visited.
        around = {s: p for s, p in self._panes.items() if time - 2 * self._span <= s <= time + 1}
        for start in sorted(around, reverse=True):
            pane, end = around[start], start + self._span
            if start == time + 1:
                continue
            if end > time:
                self._right = self._right or pane
                self._update(start, pane)
            elif end == time:
                ends_here = True
                self._update(start, pane)
                if pane[1] >= time:
                    return  # a record was here before, and has made every window that this one would
                self._previous = pane[1]
            else:
                self._left, self._previous = pane, pane[1]
                break
        self._create(around, ends_here)

    def _create(self, around: dict[int, Pane], ends_here: bool) -> None:
        time, previous = self._record.timestamp, self._previous
        if previous is not None and previous + 1 not in around and previous + 1 + self._span >= time:
            self._update(previous + 1, (None, time))
        if not ends_here:
            taken = None
            if self._left is not None and previous is not None and time - self._span <= previous:
                taken = self._left[0]
            self._update(time - self._span, (taken, time))
        self._create_right(around)

    def _create_right(self, around: dict[int, Pane]) -> None:
        time = self._record.timestamp
        if time + 1 not in around and self._right is not None and self._right[1] > time:
            self._windows.settle(self._record, self._panes, time + 1, self._right)

    def early(self) -> None:
        """Go through the windows of a record so early that the window which ends with it would begin before 0."""
        time = self._record.timestamp
        around = {s: p for s, p in self._panes.items() if 0 <= s <= time + 1}
        combined = around.get(0)
        if combined is not None and combined[1] < time:
            self._previous = combined[1]
        for start in sorted(around):
            if 0 < start <= time:
                self._right = around[start]
                self._update(start, around[start])
        if self._right is None and combined is not None and combined[1] > time:
            self._right = combined
        self._create_right(around)
        if self._previous is not None and self._previous + 1 not in around:
            self._update(self._previous + 1, (None, time))
        self._update(0, combined or (None, time))

    def _update(self, start: int, before: Pane) -> None:
        self._windows.update(self._record, self._panes, start, before, self._closed)
