"""Two streams joined: pairs of records of one key whose timestamps are near each other.

A record of the left at t meets those of the right in [t - before, t + after], one of the right those of the left in
[t - after, t + before], ends included. Each side is remembered for before + after + grace of its own stream time; what
has been forgotten meets nobody. The time of a pair is that of the later one.

Of a left join a record of the left that has met nobody flows out alone, of an outer join either side's, once its window
and the grace are over by the stream time of both sides together. One that comes when that is so already flows out at
once; Kafka Streams does the same without regard to the grace, and so may show a record alone that meets somebody later.
A record without a value is dropped, and so is one without a key, but on the side that may be alone.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.timeline import NOT_YET, Timeline

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.keycode import KeyCode
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.lowering.stateful.store import Store
    from ottla.streams.plan.joins import StreamJoin as StreamJoinNode

_LONE = struct.Struct(">qB")

# A timestamp, a value, and whether it still waits to meet somebody.
Met = tuple[int, Any, bool]
Row = tuple[int | None, list[Met], list[Met]]


class StreamJoin(Operator):
    """rows: key → (when to look at it next, left records, right records); lone: those that have met nobody; and when
    they leave; timeline: rows to look at.
    """

    stores = ("rows", "lone", "timeline", "leaving")

    def __init__(
        self,
        how: str,
        join: Callable[[Any, Any, Any], Any],
        code: "KeyCode",
        before_ms: int,
        after_ms: int,
        grace_ms: int,
    ) -> None:
        self._join = join
        self._code = code
        self._alone = {"inner": (False, False), "left": (True, False), "outer": (True, True)}[how]
        # How far before and after its own time a record of each side looks.
        self._reach = ((before_ms, after_ms), (after_ms, before_ms))
        self._grace = grace_ms
        self._retention = before_ms + after_ms + grace_ms

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._lone = stores["lone"]
        self._timeline = Timeline(stores["timeline"], self._retention // 4)
        self._leaving = Timeline(stores["leaving"], self._retention // 16)
        self._seen: list[int] = self._timeline.marks.setdefault("seen", [NOT_YET, NOT_YET])
        self._touched: dict[bytes, None] = {}

    def prepare(self, records: "Sequence[Record]") -> None:
        """Read the rows of these records, and what will leave alone."""
        super().prepare(records)
        if records and self._alone[0]:
            until = max(self._timeline.now, *(record.timestamp for record in records))
            leaving = self._leaving.load(until)
            self._lone.fetch(leaving)
            self.rows.fetch(name[_LONE.size :] for name in leaving)

    def step(self, record: "Record") -> None:
        """Let a record meet those of the other side, and remember it."""
        self._timeline.advance(record.timestamp)
        if record.at is None or record.value is None:
            self._incomplete(record)
            return
        if record.timestamp == self._timeline.now:
            self._leave(record)
        side, time = record.side, record.timestamp
        row: Row = self.rows.get(record.at) or (None, [], [])
        self._seen[side] = max(self._seen[side], time)
        waits = self._meet(record, row) == 0 and self._alone[side]
        if waits and self._closes(side, time) <= self._timeline.now:
            self._emit_alone(record.key, side, record.value, time, record.headers)
            waits = False
        if waits:
            self._wait(record)
        if time > self._seen[side] - self._retention or waits:
            (row[1] if side == 0 else row[2]).append((time, record.value, waits))
            self.rows.put(record.at, row)
            self._touched[record.at] = None

    def _incomplete(self, record: "Record") -> None:
        if record.at is None:
            if record.value is not None and self._alone[record.side]:
                self._emit_alone(record.key, record.side, record.value, record.timestamp, record.headers)
        else:
            self._seen[record.side] = max(self._seen[record.side], record.timestamp)

    def _meet(self, record: "Record", row: Row) -> int:
        assert record.at is not None
        side, time = record.side, record.timestamp
        before, after = self._reach[side]
        others = row[2] if side == 0 else row[1]
        alive = self._seen[1 - side] - self._retention
        earliest, latest = max(0, time - before), max(0, time + after)
        found = 0
        # Kafka Streams goes through them by time, and those of one time as they came.
        order = sorted(range(len(others)), key=lambda n: others[n][0])
        for n in order:
            other_time, value, waits = others[n]
            if other_time <= alive or not earliest <= other_time <= latest:
                continue
            found += 1
            if waits:
                others[n] = (other_time, value, False)
                self._met(record.at, 1 - side, other_time)
                self.rows.put(record.at, row)
                self._touched[record.at] = None
            pair = (record.value, value) if side == 0 else (value, record.value)
            self.emit(record.key, self._join(record.key, *pair), None, max(time, other_time), record.headers)
        return found

    def _closes(self, side: int, time: int) -> int:
        return time + self._reach[side][1] + self._grace + 1

    def _wait(self, record: "Record") -> None:
        assert record.at is not None
        name = _LONE.pack(record.timestamp, record.side) + record.at
        self._lone.put(name, [*(self._lone.get(name) or ()), record.value])
        self._leaving.add(self._closes(record.side, record.timestamp), name)

    def _met(self, at: bytes, side: int, time: int) -> None:
        name = _LONE.pack(time, side) + at
        self._lone.delete(name)
        self._leaving.discard(self._closes(side, time), name)

    def _leave(self, record: "Record") -> None:
        # The earlier ones first, of one time the left, whichever way their windows lie.
        due = sorted(name for _, name in self._leaving.pop(self._timeline.now))
        for name in due:
            time, side = _LONE.unpack_from(name)
            at = name[_LONE.size :]
            for value in self._lone.get(name) or ():
                self._emit_alone(self._code.decode(at), side, value, time, record.headers)
            self._lone.delete(name)
            row = self.rows.get(at)
            if row is not None:
                for n, (when, value, waits) in enumerate(row[1 + side]):
                    if waits and when == time:
                        row[1 + side][n] = (when, value, False)
                self.rows.put(at, row)
                self._touched[at] = None

    def _emit_alone(self, key: Any, side: int, value: Any, time: int, headers: Any) -> None:
        pair = (value, None) if side == 0 else (None, value)
        self.emit(key, self._join(key, *pair), None, time, headers)

    def finish(self) -> None:
        """Forget records that can meet nobody any more."""
        due = [at for _, at in self._timeline.pop(self._timeline.now, whole=True)]
        self.rows.fetch(due)
        for at in due:
            _, left, right = self.rows.get(at) or (None, [], [])
            self.rows.put(at, (None, left, right))
            self._touched[at] = None
        for at in self._touched:
            scheduled, *sides = self.rows.get(at)
            kept = [
                [each for each in records if each[0] > seen - self._retention or each[2]]
                for records, seen in zip(sides, self._seen, strict=True)
            ]
            if not (kept[0] or kept[1]):
                self.rows.delete(at)
                continue
            if scheduled is None:
                scheduled = max(each[0] for records in kept for each in records) + self._retention + 1
                if scheduled <= self._timeline.now:  # its own side is behind
                    scheduled = self._timeline.now + self._retention // 4 + 1
                self._timeline.add(scheduled, at)
            self.rows.put(at, (scheduled, *kept))
        self._timeline.flush()
        self._leaving.flush()


def stream_join_stages(node: "StreamJoinNode", context: "Context") -> "list[Stage]":
    """Return a join of two streams."""
    from ottla.streams.lowering.stateful.joining import joiner
    from ottla.streams.lowering.stateful.keycode import key_code
    from ottla.streams.lowering.stateful.stage import stage

    join = joiner(node, node.inputs[0].value, node.inputs[1].value)
    window = node.window
    operator = StreamJoin(
        node.how, join, key_code(node.key), window.before_ms, window.after_ms, window.grace_ms
    )
    return [stage(node, operator)]
