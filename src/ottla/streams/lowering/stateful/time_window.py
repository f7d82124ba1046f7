"""Aggregates over tumbling and hopping windows.

A window [start, start + size) takes records until stream time has reached its end and its grace, and is closed from
then on: what comes later for it is dropped. Stream time is the latest timestamp that this operator partition has
seen, of whatever key. Windows begin at multiples of the advance, and none before 0, as in Kafka Streams.

Each update flows out, or, with `closing`, one final result for each window once it is closed.
"""

import struct
from collections.abc import Mapping, Sequence

from ottla.streams.lowering.stateful.fold import Fold
from ottla.streams.lowering.stateful.keycode import KeyCode
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.store import Store
from ottla.streams.lowering.stateful.timeline import Timeline

_START = struct.Struct(">q")


def starts(timestamp: int, size: int, advance: int) -> range:
    """Return the starts of the windows that a timestamp is in."""
    first = max(0, timestamp - size + advance) // advance * advance
    return range(first, timestamp + 1, advance)


class TimeWindows(Operator):
    """rows: key and start → (aggregate, timestamp); timeline: when each of them closes."""

    stores = ("rows", "timeline")

    def __init__(
        self,
        fold: Fold,
        code: KeyCode,
        size_ms: int,
        advance_ms: int,
        grace_ms: int,
        *,
        closing: bool = False,
    ) -> None:
        self._fold = fold
        self._code = code
        self._size = size_ms
        self._advance = advance_ms
        self._grace = grace_ms
        self._closing = closing

    def open(self, stores: Mapping[str, Store]) -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._timeline = Timeline(stores["timeline"], max(self._advance, (self._size + self._grace) // 64))

    def prepare(self, records: Sequence[Record]) -> None:
        """Read the windows of these records, and those that will close."""
        wanted = [
            record.at + _START.pack(start)
            for record in records
            if record.at is not None and record.value is not None
            for start in starts(record.timestamp, self._size, self._advance)
        ]
        if self._closing and records:
            until = max(self._timeline.now, *(record.timestamp for record in records))
            wanted += self._timeline.load(until)
        self.rows.fetch(wanted)

    def step(self, record: Record) -> None:
        """Add a record to the windows that it is in and that are still open."""
        if record.at is None or record.value is None:
            return
        moved = self._timeline.advance(record.timestamp)
        closed = self._timeline.now - self._grace
        for start in starts(record.timestamp, self._size, self._advance):
            end = start + self._size
            if end > closed:
                self._add(record, start, end)
        if moved and self._closing:
            self._close(record)

    def _add(self, record: Record, start: int, end: int) -> None:
        assert record.at is not None
        name = record.at + _START.pack(start)
        row = self.rows.get(name)
        if row is None:
            old, timestamp = None, record.timestamp
            self._timeline.add(end + self._grace, name)
        else:
            old, timestamp = row[0], max(row[1], record.timestamp)
        new = self._fold.add(record, old)
        if new is None:
            self.rows.delete(name)
        else:
            self.rows.put(name, (new, timestamp))
        if not self._closing:
            self.emit((record.key, start, end), new, old, timestamp, record.headers)

    def _close(self, record: Record) -> None:
        for time, name in self._timeline.pop(self._timeline.now):
            row = self.rows.get(name)
            if row is None:
                continue
            end = time - self._grace
            key = self._code.decode(name[: -_START.size])
            self.emit((key, end - self._size, end), row[0], None, row[1], record.headers)
            self.rows.delete(name)

    def finish(self) -> None:
        """Forget windows that are closed."""
        for _, name in self._timeline.pop(self._timeline.now, whole=True):
            self.rows.delete(name)
        self._timeline.flush()
