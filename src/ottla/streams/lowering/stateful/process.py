"""A processor of the user's own: its records in their order, its stores, its timers.

After a record has been taken and has moved stream time, timers of stream time that are due are called; those of the
wall clock when Spark wakes the operator, between micro-batches. That is Kafka Streams' order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.streams.errors import FunctionFailed, TopologyError, TypeMismatch
from ottla.streams.lowering.calling import loader
from ottla.streams.lowering.stateful.keeping import KeyValues, TimedValues
from ottla.streams.lowering.stateful.keycode import same_key
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.timeline import Timeline
from ottla.streams.lowering.stateful.timers import Schedule, Timers, checked_clock
from ottla.streams.processor import Headers, Incoming, Processor
from ottla.streams.stores import Store as StoreNode
from ottla.streams.stores import WindowStore
from ottla.streams.types.type import Type
from ottla.streams.windows import Span, milliseconds

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context as LoweringContext
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.lowering.stateful.store import Store
    from ottla.streams.plan.process import Process as ProcessNode


class Process(Operator):
    """rows-<store>, times-<store>: as `keeping.py` has them; timers: what is due when, and the stream time."""

    def __init__(
        self,
        name: str,
        place: str,
        make: Callable[[], Processor],
        stores: Sequence[StoreNode | WindowStore],
        types: tuple[Type, Type, Type, Type],  # key and value in, key and value out
        *,
        values_only: bool = False,
        wall_clock: bool = False,
    ) -> None:
        self.name = name
        self.place = place
        self.wall_clock = wall_clock
        self.values_only = values_only
        self._make = make
        self._nodes = tuple(stores)
        self.types = types
        self.stores = ("timers",)
        for each in stores:
            self.stores += (f"rows-{each.name}", *((f"times-{each.name}",) if _span(each) else ()))

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Make a processor, and let it get ready."""
        super().open(stores)
        self._load_key, self._load_value = loader(self.types[0]), loader(self.types[1])
        self.timeline = Timeline(stores["timers"])
        self.timers = Timers(stores["timers"], self.now)
        self.kept: dict[str, KeyValues | TimedValues] = {}
        for node in self._nodes:
            rows = stores[f"rows-{node.name}"]
            span = _span(node)
            times = Timeline(stores[f"times-{node.name}"], span // 4) if span else None
            if isinstance(node, WindowStore):
                assert times is not None
                self.kept[node.name] = TimedValues(node, rows, times)
            else:
                self.kept[node.name] = KeyValues(node, rows, times)
        self._context = Context(self)
        self._processor = self._make()
        self._guarded(self._processor.init, self._context)
        parts = {"processor": self._processor, "context": self._context}
        parts |= {f"store {name}": each for name, each in self.kept.items()}
        self._guarded(self.timers.ready, parts)

    def prepare(self, records: "Sequence[Record]") -> None:
        """Read the rows of these records' own keys: most processors will ask for them."""
        for node in self._nodes:
            if node.key_type == self.types[0]:
                self.kept[node.name].foresee({record.at for record in records if record.at is not None})

    def step(self, record: "Record") -> None:
        """Hand a record over, then call the timers that it has made due."""
        if self.timeline.advance(record.timestamp):
            self._move()
        self._context.record = record
        headers = tuple((each[0], each[1]) for each in record.headers or ())
        incoming = Incoming(
            self._load_key(record.key),
            self._load_value(record.value),
            record.timestamp,
            headers,
            record.topic,
            record.partition,
            record.offset,
        )
        self._guarded(self._processor.process, incoming)
        self._context.record = None
        self._ring("stream", self.timeline.now)

    def _move(self) -> None:
        for each in self.kept.values():
            if each.times is not None:
                each.times.advance(self.timeline.now)

    def _ring(self, clock: str, time: int) -> None:
        if self.timers.is_due(clock, time):
            self._context.time = time
            self._guarded(self.timers.ring, clock, time)
            self._context.time = None

    def finish(self) -> None:
        """Call the timers of the wall clock, and put everything away."""
        if self.wall_clock:
            self._ring("wall", self.now)
        self._guarded(self._processor.close)
        for each in self.kept.values():
            each.finish()
        self.timers.flush(self.name, self.place)
        self.timeline.flush()

    def alarms(self) -> list[int]:
        """Return when to be woken by the clock on the wall."""
        due = self.timers.next_on_wall()
        return [] if due is None else [due]

    def _guarded(self, call: Callable[..., Any], *given: Any) -> None:
        try:
            call(*given)
        except FunctionFailed:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise FunctionFailed(self.name, self.place, said) from error


def _span(node: StoreNode | WindowStore) -> int:
    """How long what is in a store is kept; 0 if for good."""
    return node.retention_ms if isinstance(node, WindowStore) else node.ttl_ms or 0


class Context:
    """What the processor sees."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._types = process.types
        self._is_same = same_key(process.types[2])
        self.record: Record | None = None
        self.time: int | None = None

    @property
    def partition(self) -> int:
        """The operator partition."""
        return self._process.partition

    @property
    def stream_time(self) -> int:
        """The latest timestamp so far."""
        return max(self._process.timeline.now, -1)

    @property
    def now(self) -> int:
        """The time on the wall when this micro-batch began."""
        return self._process.now

    def store(self, name: str) -> KeyValues | TimedValues:
        """Return a store by its name."""
        found = self._process.kept.get(name)
        if found is None:
            known = ", ".join(self._process.kept) or "none"
            raise self._failed(f"there is no store {name!r}; the operator was given {known}")
        return found

    def forward(
        self, key: Any, value: Any, timestamp: int | None = None, headers: Headers | None = None
    ) -> None:
        """Send a record on."""
        record = self.record
        if timestamp is None:
            timestamp = record.timestamp if record is not None else self.time
        if timestamp is None:
            raise self._failed("there is no record at hand to take the timestamp from: give one")
        sent = record.headers if headers is None and record is not None else list(headers or ()) or None
        out = self._dumped(self._types[2], key, "key")
        if self._process.values_only and (record is None or not self._is_same(out, record.key)):
            raise self._failed("process_values forwards records under the key that they came with")
        self._process.emit(out, self._dumped(self._types[3], value, "value"), None, timestamp, sent)

    def schedule(self, interval: Span, callback: Callable[[int], None], *, clock: str = "stream") -> Schedule:
        """Have a callback called every interval."""
        process = self._process
        checked = checked_clock(clock, process.wall_clock, process.name, process.place)
        try:
            every = milliseconds(interval, "interval")
        except TopologyError as error:
            raise self._failed(str(error)) from None
        if every < 1:
            raise self._failed(f"the interval {interval!r} is shorter than a millisecond")
        return process.timers.add(checked, every, callback)

    def _dumped(self, type: Type, given: Any, what: str) -> Any:
        if given is None:
            return None
        try:
            return type.dump(given)
        except TypeMismatch as error:
            raise self._failed(f"forwarded the wrong {what}: {error.args[0]}") from None

    def _failed(self, reason: str) -> FunctionFailed:
        return FunctionFailed(self._process.name, self._process.place, reason)


def process_stages(node: "ProcessNode", context: "LoweringContext") -> "list[Stage]":
    """Return a processor."""
    from ottla.streams.lowering.stateful.stage import stage

    source = node.input
    operator = Process(
        node.name,
        node.place,
        node.processor,
        node.stores,
        (source.key, source.value, node.key, node.value),
        values_only=node.values_only,
        wall_clock=bool(getattr(node.processor(), "wall_clock", False)),
    )
    return [stage(node, operator)]
