"""A processor of the user's own: its records, its stores, its timers.

After a record has been taken, the timers of stream time that are due are called. The processor is made anew for each
micro-batch; stores and timers stay.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.streams.errors import FunctionFailed, TopologyError, TypeMismatch
from ottla.streams.plan.process import Process
from ottla.streams.processor import Headers, Incoming
from ottla.streams.reference.calling import guarded, loaded
from ottla.streams.reference.change import NOWHERE, Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.stores import KeyValues, TimedValues
from ottla.streams.reference.timers import Callback, Schedule, Timers
from ottla.streams.stores import WindowStore
from ottla.streams.types.type import Type
from ottla.streams.windows import Span, milliseconds


class RunProcessor(Operator):
    """A processor, and what outlives it."""

    def __init__(self, node: Process) -> None:
        self.node = node
        self.stream_time = -1
        self.now = -1
        self.timers = Timers()
        self.stores: dict[str, KeyValues | TimedValues] = {
            each.name: TimedValues(each, self._time)
            if isinstance(each, WindowStore)
            else KeyValues(each, self._time)
            for each in node.stores
        }
        self._before = node.input
        self.out: list[Change] = []
        self.record: Change | None = None
        self.time: int | None = None
        self._processor: Any = None
        self.has_wall_clock = False

    def _time(self) -> int:
        return self.stream_time

    def begin(self, now: int) -> Iterable[Change]:
        """Make a processor, and let it get ready."""
        self._processor = self._guarded(self.node.processor)
        self.has_wall_clock = bool(getattr(self._processor, "wall_clock", False))
        self.now = now if self.has_wall_clock else -1
        self.timers.begin(self._processor)
        self._guarded(self._processor.init, Context(self))
        self.timers.begun()
        return self._flown_out()

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Hand a record over, then call the timers that are due."""
        self.stream_time = max(self.stream_time, change.timestamp)
        self.record = change
        incoming = Incoming(
            loaded(self._before.key, change.key),
            loaded(self._before.value, change.value),
            change.timestamp,
            tuple(change.headers),
            *change.place,
        )
        self._guarded(self._processor.process, incoming)
        self.record = None
        self._call_timers("stream", self.stream_time)
        return self._flown_out()

    def wake(self, now: int) -> Iterable[Change]:
        """Call the timers of the wall clock."""
        if self.has_wall_clock:
            self.now = now
            self._call_timers("wall", now)
        return self._flown_out()

    def end(self) -> Iterable[Change]:
        """Let the processor go."""
        self._guarded(self._processor.close)
        return self._flown_out()

    def _call_timers(self, clock: str, time: int) -> None:
        self.time = time
        while (due := self.timers.due(clock, time)) is not None:
            self._guarded(due.callback, time)
        self.time = None

    def _flown_out(self) -> list[Change]:
        out, self.out = self.out, []
        return out

    def _guarded(self, call: Callable[..., Any], *given: Any) -> Any:
        return guarded(self.node.name, self.node.place, call, *given)


class Context:
    """What the processor sees."""

    def __init__(self, process: RunProcessor) -> None:
        self._process = process

    @property
    def partition(self) -> int:
        """The operator partition: there is one."""
        return 0

    @property
    def stream_time(self) -> int:
        """The latest timestamp so far."""
        return self._process.stream_time

    @property
    def now(self) -> int:
        """The time on the wall."""
        return self._process.now

    def store(self, name: str) -> KeyValues | TimedValues:
        """Return a store by its name."""
        found = self._process.stores.get(name)
        if found is None:
            known = ", ".join(self._process.stores) or "none"
            raise self._failed(f"there is no store {name!r}; the operator was given {known}")
        return found

    def forward(
        self, key: Any, value: Any, timestamp: int | None = None, headers: Headers | None = None
    ) -> None:
        """Send a record on."""
        process, node, record = self._process, self._process.node, self._process.record
        if timestamp is None:
            timestamp = process.time if record is None else record.timestamp
        if timestamp is None:
            raise self._failed("there is no record at hand to take the timestamp from: give one")
        if headers is None:
            headers = () if record is None else tuple(record.headers)
        sent = self._plain(node.key, key, "key")
        if node.values_only and (record is None or not self._same(sent, record.key)):
            raise self._failed("process_values forwards records under the key that they came with")
        plain = self._plain(node.value, value, "value")
        place = NOWHERE if record is None else record.place
        process.out.append(Change(sent, plain, timestamp, headers=tuple(headers), place=place))

    def schedule(self, interval: Span, callback: Callback, *, clock: str = "stream") -> Schedule:
        """Have a callback called every interval."""
        if clock not in ("stream", "wall"):
            raise self._failed(f"there is no clock {clock!r}: it is 'stream' or 'wall'")
        if clock == "wall" and not self._process.has_wall_clock:
            raise self._failed("clock='wall' needs wall_clock = True in the processor's class")
        try:
            every = milliseconds(interval, "interval")
        except TopologyError as error:
            raise self._failed(str(error)) from None
        if every < 1:
            raise self._failed(f"the interval {interval!r} is shorter than a millisecond")
        return self._process.timers.add(clock, every, callback, self._process.now)

    def _same(self, one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        type = self._process.node.key
        return key_bytes(type, one) == key_bytes(type, other)

    def _plain(self, type: Type, given: Any, what: str) -> Any:
        if given is None:
            return None
        try:
            return type.dump(given)
        except TypeMismatch as error:
            raise self._failed(f"forwarded the wrong {what}: {error.args[0]}") from None

    def _failed(self, reason: str) -> FunctionFailed:
        return FunctionFailed(self._process.node.name, self._process.node.place, reason)
