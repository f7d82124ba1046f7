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
    """A record that a processor receives."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Stop the calls."""


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
        """Remove a key and return its value."""

    def setdefault(self, key: Any, default: Any) -> Any:
        """Return the value of a key. Set it to `default` first if the key is missing."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over all entries, in the order of the bytes of their keys. It reads the whole store."""

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over the entries from `first` to `last`, both included, in the order of the bytes of their keys."""


class TimedValues(Protocol):
    """A store of values by key and time. Values that are older than its retention are removed."""

    def put(self, key: Any, value: Any, time: int) -> None:
        """Store a value; None removes it."""

    def get(self, key: Any, time: int) -> Any:
        """Return the value at exactly this time, or None."""

    def fetch(self, key: Any, first: int, last: int) -> list[tuple[int, Any]]:
        """Return the times and values of a key from `first` to `last`, both included, in the order of time."""

    def items(self) -> Iterator[tuple[Any, int, Any]]:
        """Iterate over all entries by key and time. It reads the whole store."""


class ProcessorContext(Protocol):
    """What a processor uses: stores, timers, the current time, and `forward` for its results."""

    @property
    def partition(self) -> int:
        """The partition of the operator that this processor works for."""

    @property
    def stream_time(self) -> int:
        """The highest timestamp of all records so far; -1 before the first record."""

    @property
    def now(self) -> int:
        """The wall-clock time at the start of this micro-batch, in milliseconds; -1 unless `wall_clock` is set."""

    def store(self, name: str) -> Any:
        """Return a store of the operator by its name: KeyValues for a Store, TimedValues for a WindowStore."""

    def forward(
        self, key: Any, value: Any, timestamp: int | None = None, headers: Headers | None = None
    ) -> None:
        """Forward a record. By default it has the timestamp and headers of the current record.

        In a timer, it has the time of the timer and no headers by default.
        """

    def schedule(self, interval: Span, callback: Callable[[int], None], *, clock: str = "stream") -> Timer:
        """Call `callback(time)` every interval of stream time (`clock="stream"`) or wall-clock time (`clock="wall"`).

        Only records advance stream time. After a record that advances it the callback is called once, however many
        intervals have passed, and for the first time after the current record. A wall-clock callback is called between
        micro-batches, after the first record of the operator partition, and never in `app.test`.

        A timer that is scheduled outside of `init` is stored with its callback: a method by its name, a function
        pickled with its closure. A cancelled timer stays cancelled, even if `init` schedules it again.
        """


class Processor:
    """The base class of processors. Override `process`."""

    # Set it to use schedule(..., clock="wall").
    wall_clock: ClassVar[bool] = False

    def init(self, context: ProcessorContext) -> None:
        """Called before the first record of a micro-batch."""

    def process(self, record: Incoming) -> None:
        """Called for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called after the last record of a micro-batch."""
