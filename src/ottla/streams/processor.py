"""Processors of your own: records in, records out, with stores and timers.

    class Alarms(Processor):
        def init(self, context):
            self.context = context
            self.seen = context.store("seen")
            context.schedule("1 minute", self.tell)

        def process(self, record):
            self.seen[record.key] = self.seen.get(record.key, 0) + 1

        def tell(self, time):
            for key, count in self.seen.items():
                self.context.forward(key, count)

    app.stream("alarms").process(Alarms, stores=[Store("seen", str, int)], value=int)

A processor is made anew for every micro-batch and operator partition, and `init` is called each time: what is to be
remembered goes into a store, and `init` schedules the same each time. A store holds the keys of one operator
partition, as in Kafka Streams.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

from ottla.streams.windows import Span

Headers = tuple[tuple[str, bytes | None], ...]


class Incoming(NamedTuple):
    """A record that a processor gets."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


class Timer(Protocol):
    """Something that was scheduled."""

    def cancel(self) -> None:
        """Let it be called no more."""


class KeyValues(Protocol):
    """A store of keys and values, used like a dict."""

    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __delitem__(self, key: Any) -> None: ...
    def __contains__(self, key: object) -> bool: ...
    def __iter__(self) -> Iterator[Any]: ...

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key."""

    def pop(self, key: Any, default: Any = None) -> Any:
        """Take a key out and return its value."""

    def setdefault(self, key: Any, default: Any) -> Any:
        """Return the value of a key, after giving it one if it had none."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through all entries, in the order of the keys' bytes. It reads the whole store."""

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Go through the entries from one key to another, both included, in the order of the keys' bytes."""


class TimedValues(Protocol):
    """A store of values by key and time. What is older than its retention, by stream time, is forgotten."""

    def put(self, key: Any, value: Any, time: int) -> None:
        """Keep a value; None takes one out."""

    def get(self, key: Any, time: int) -> Any:
        """Return the value at that very time, or None."""

    def fetch(self, key: Any, first: int, last: int) -> list[tuple[int, Any]]:
        """Return times and values of a key from one time to another, both included, by time."""

    def items(self) -> Iterator[tuple[Any, int, Any]]:
        """Go through all entries by key and time. It reads the whole store."""


class ProcessorContext(Protocol):
    """What a processor may ask for, and where it sends records."""

    @property
    def partition(self) -> int:
        """The operator partition."""

    @property
    def stream_time(self) -> int:
        """The latest timestamp of all records so far, -1 before the first."""

    @property
    def now(self) -> int:
        """The time on the wall when this micro-batch began, in milliseconds; -1 unless `wall_clock` is set."""

    def store(self, name: str) -> Any:
        """Return a store that the operator was given: KeyValues for a Store, TimedValues for a WindowStore."""

    def forward(
        self, key: Any, value: Any, timestamp: int | None = None, headers: Headers | None = None
    ) -> None:
        """Send a record on, with timestamp and headers of the record at hand; in a timer, its time and none."""

    def schedule(self, interval: Span, callback: Callable[[int], None], *, clock: str = "stream") -> Timer:
        """Have `callback(time)` called every interval, of stream time ("stream") or of time on the wall ("wall").

        Stream time moves with records alone: after the record that has moved it the callback is called once, however
        many intervals have passed, and first after the record at hand. By the wall it is called between micro-batches,
        once the operator partition has had its first record, and never in `app.test`.

        What is scheduled outside of `init` is kept with its callback: a method is found again by its name, and a
        function is pickled with what it knows. What was cancelled stays cancelled, also if `init` schedules it again.
        """


class Processor:
    """Subclass it and override `process`."""

    # Set it to use schedule(..., clock="wall").
    wall_clock: ClassVar[bool] = False

    def init(self, context: ProcessorContext) -> None:
        """Get ready: called before the first record of a micro-batch."""

    def process(self, record: Incoming) -> None:
        """Take a record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called after the last record of a micro-batch."""
