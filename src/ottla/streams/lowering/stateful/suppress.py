"""Changes held back: until a window can change no more, or until some time has passed since the first of them.

Of each key the last change is held, at the place in time of the first. What is held leaves when stream time has come to
that time and the wait; stream time here is the latest timestamp of the changes that came. Until a window closes
means: its end, its grace, and for sessions the gap. The windows whose ends belong to them are held one millisecond
longer than in Kafka Streams, which lets such a result go while a record of that very millisecond could still change it.

A deletion that was held until a window closed is dropped, since nobody has heard of the result that it deletes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.errors import StreamsError, TopologyError
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.timeline import Timeline
from ottla.streams.windows import SessionWindow, SlidingWindow, TimeLimit, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.lowering.stateful.store import Store
    from ottla.streams.plan.node import Node
    from ottla.streams.plan.tables import Suppress as SuppressNode


@dataclass(frozen=True)
class Patience:
    """How long changes are held. With `final` the key has a window, whose end the time is counted from."""

    wait_ms: int
    final: bool = False
    records_max: int | None = None
    fails_when_full: bool = False


class Suppress(Operator):
    """rows: key → (due, key, value, old, timestamp, headers); timeline: when each is due."""

    stores = ("rows", "timeline")

    def __init__(self, patience: Patience, name: str = "suppress") -> None:
        self._patience = patience
        self._name = name

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._timeline = Timeline(stores["timeline"], self._patience.wait_ms // 16)

    def prepare(self, records: "Sequence[Record]") -> None:
        """Read what is held for these keys, and what will leave."""
        super().prepare(records)
        if records:
            until = max(self._timeline.now, *(record.timestamp for record in records))
            self.rows.fetch(self._timeline.load(until))

    def step(self, record: "Record") -> None:
        """Hold a change, and let go what has been held long enough."""
        if record.at is None:
            return
        self._timeline.advance(record.timestamp)
        held = self.rows.get(record.at)
        if held is None:
            since = record.key[2] if self._patience.final else record.timestamp
            due, old = since + self._patience.wait_ms, record.old
            self._timeline.add(due, record.at)
            self._count(1)
        else:
            due, old = held[0], held[3]
        self.rows.put(record.at, (due, record.key, record.value, old, record.timestamp, record.headers))
        for _, at in self._timeline.pop(self._timeline.now):
            self._release(at)
        self._make_room()

    def _release(self, at: bytes) -> None:
        held = self.rows.get(at)
        if held is None:
            return
        _, key, value, old, timestamp, headers = held
        self.rows.delete(at)
        self._count(-1)
        if value is not None or not self._patience.final:
            self.emit(key, value, old, timestamp, headers)

    def _make_room(self) -> None:
        limit = self._patience.records_max
        if limit is None or self._timeline.marks["held"] <= limit:
            return
        if self._patience.fails_when_full:
            raise StreamsError(
                f"{self._name}: more than {limit} keys are held back",
                hint="allow more with records_max, or let the oldest go with when_full='emit'",
            )
        while self._timeline.marks["held"] > limit:
            first = self._timeline.first()
            assert first is not None
            self._timeline.discard(*first)
            self._release(first[1])

    def _count(self, more: int) -> None:
        marks: dict[str, Any] = self._timeline.marks
        marks["held"] = marks.get("held", 0) + more

    def finish(self) -> None:
        """Put away what is still held."""
        self._timeline.flush()


def patience_of(node: "SuppressNode") -> Patience:
    """Return how long an operator holds changes back."""
    until = node.until
    if isinstance(until, TimeLimit):
        return Patience(until.wait_ms, False, until.records_max, until.when_full == "fail")
    window = _window_above(node.input)
    if window is None:
        raise TopologyError(
            f"{node.name}: there is no window to wait for",
            hint="suppress until window close after a windowed aggregate",
        )
    if isinstance(window, SessionWindow):
        return Patience(window.gap_ms + window.grace_ms + 1, final=True)
    return Patience(window.grace_ms + (1 if isinstance(window, SlidingWindow) else 0), final=True)


def _window_above(node: "Node") -> Window | None:
    window: Window | None = getattr(node, "window", None)
    if window is not None or not node.inputs:
        return window
    return _window_above(node.inputs[0])


def suppress_stages(node: "SuppressNode", context: "Context") -> "list[Stage]":
    """Return a suppress."""
    from ottla.streams.lowering.stateful.stage import stage

    return [stage(node, Suppress(patience_of(node), node.name), olds=True)]
