"""Aggregates over sessions: windows that grow while records of a key come no further apart than `gap`.

A record makes a session of its own, [t, t], and takes in those that are within the gap: their aggregates are merged, a
tombstone flows out for each, then the new session. A session is closed once stream time is beyond its end, the gap
and the grace, and out of reach from then on; a record whose session would be closed is dropped. The time of a result
is the end of its session.
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

_SPAN = struct.Struct(">qq")

# (start, end) → aggregate
Sessions = dict[tuple[int, int], Any]


class SessionWindows(Operator):
    """rows: key → (when to look at it next, {(start, end): aggregate}); timeline: rows to look at; closings: sessions,
    when only final results are asked for.
    """

    stores = ("rows", "timeline", "closings")

    def __init__(
        self, fold: Fold, code: KeyCode, gap_ms: int, grace_ms: int, *, closing: bool = False
    ) -> None:
        self._fold = fold
        self._code = code
        self._gap = gap_ms
        self._grace = grace_ms
        self._closing = closing

    def open(self, stores: Mapping[str, Store]) -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._timeline = Timeline(stores["timeline"], (self._gap + self._grace) // 4)
        self._closings = Timeline(stores["closings"], (self._gap + self._grace) // 16)
        self._touched: dict[bytes, None] = {}

    def prepare(self, records: Sequence[Record]) -> None:
        """Read the rows of these records, and those whose sessions will close."""
        super().prepare(records)
        if self._closing and records:
            until = max(self._timeline.now, *(record.timestamp for record in records))
            self.rows.fetch(name[: -_SPAN.size] for name in self._closings.load(until))

    def step(self, record: Record) -> None:
        """Add a record to the session that it makes, makes longer, or makes one of several."""
        if record.at is None or record.value is None:
            return
        self._timeline.advance(record.timestamp)
        closed = self._timeline.now - self._grace - self._gap
        scheduled, sessions = self.rows.get(record.at) or (None, {})
        found = self._within_reach(sessions, record.timestamp, closed)
        start = min([record.timestamp, *(each[0] for each in found)])
        end = max([record.timestamp, *(each[1] for each in found)])
        if end >= closed:
            self._gather(record, sessions, found, (start, end))
            self.rows.put(record.at, (scheduled, sessions))
            self._touched[record.at] = None
        if self._closing:
            self._close(record)

    def _within_reach(self, sessions: Sessions, timestamp: int, closed: int) -> list[tuple[int, int]]:
        earliest, latest = max(timestamp - self._gap, closed), timestamp + self._gap
        # Kafka Streams' stores go through sessions by their ends.
        return sorted(
            (each for each in sessions if each[1] >= earliest and each[0] <= latest),
            key=lambda each: (each[1], each[0]),
        )

    def _gather(
        self, record: Record, sessions: Sessions, found: list[tuple[int, int]], session: tuple[int, int]
    ) -> None:
        assert record.at is not None
        aggregate = None
        for each in found:
            aggregate = self._fold.merge(record.key, aggregate, sessions[each])
        old = None
        for each in found:
            gone = sessions.pop(each)
            if self._closing:
                self._closings.discard(self._closes(each), record.at + _SPAN.pack(*each))
            elif session == (record.timestamp, record.timestamp):
                old = gone  # another record at the same time: the session stays what it is
            else:
                self.emit((record.key, *each), None, gone, each[1], record.headers)
        new = self._fold.add(record, aggregate)
        if new is not None:
            sessions[session] = new
        if self._closing:
            self._closings.add(self._closes(session), record.at + _SPAN.pack(*session))
        else:
            self.emit((record.key, *session), new, old, session[1], record.headers)

    def _closes(self, session: tuple[int, int]) -> int:
        return session[1] + self._gap + self._grace + 1

    def _close(self, record: Record) -> None:
        for _, name in self._closings.pop(self._timeline.now):
            at = name[: -_SPAN.size]
            start, end = _SPAN.unpack(name[-_SPAN.size :])
            row: tuple[int | None, Sessions] = self.rows.get(at) or (None, {})
            scheduled, sessions = row
            if (start, end) in sessions:
                key = (self._code.decode(at), start, end)
                self.emit(key, sessions.pop((start, end)), None, end, record.headers)
                self.rows.put(at, (scheduled, sessions))
                self._touched[at] = None

    def finish(self) -> None:
        """Forget sessions that are closed."""
        due = [at for _, at in self._timeline.pop(self._timeline.now, whole=True)]
        self.rows.fetch(due)
        for at in due:
            _, sessions = self.rows.get(at) or (None, {})
            self.rows.put(at, (None, sessions))
            self._touched[at] = None
        closed = self._timeline.now - self._grace - self._gap
        for at in self._touched:
            scheduled, sessions = self.rows.get(at)
            open = {each: aggregate for each, aggregate in sessions.items() if each[1] >= closed}
            if not open:
                self.rows.delete(at)
                continue
            if scheduled is None:
                scheduled = max(self._closes(each) for each in open)
                self._timeline.add(scheduled, at)
            self.rows.put(at, (scheduled, open))
        self._timeline.flush()
        self._closings.flush()
