"""What random programs are written with, besides the DSL: functions that must be called, and processors."""

from typing import Any

from ottla.streams import (
    App,
    HoppingWindow,
    JoinWindow,
    Processor,
    SessionWindow,
    SlidingWindow,
    Store,
    TimeLimit,
    TumblingWindow,
    WindowClose,
    Windowed,
    WindowStore,
    within,
)
from ottla.streams.processor import Incoming, ProcessorContext
from tests.agreement.values import (
    BIG,
    DAY,
    INF,
    NAN,
    OLD,
    TINY,
    WHEN,
    Decimal,
    Level,
    Made,
    Part,
    Point,
    Status,
    Value,
    datetime,
)

date = datetime.date
LENGTH_MAX = 40
SAMPLE = Value(
    i=1, j=2, f=0.5, g=-0.0, s="s", t="t", b=True, c=False, d=Decimal(1), e=TINY, at=WHEN, until=OLD, day=DAY, raw=b"r",
    status=Status.NEW, level=Level.LOW, part=Part("p"), parts=[], point=Point(1), names=["n"], tags={}, pair=(1, "one"),
)  # fmt: skip


def called(given: Any) -> Any:
    """The same: a function that nobody can look into."""
    return given


def shown(given: Any) -> str:
    """Whatever it is, as text: what an aggregate of anything can keep. All bits of a float are in it."""
    return repr(given)


def chained(so_far: Any, given: Any) -> str:
    """What there is so far and one thing more; of it the end, so that it tells the order."""
    return f"{so_far},{shown(given)}"[-LENGTH_MAX:]


def paired(left: Any, right: Any) -> str:
    return f"{shown(left)[-LENGTH_MAX:]}+{shown(right)[-LENGTH_MAX:]}"


class Counting(Processor):
    """Counts the records of each key, and forwards key and count."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store("seen")

    def process(self, record: Incoming) -> None:
        if record.key is None:
            self.context.forward(None, -1)
            return
        self.seen[record.key] = self.seen.get(record.key, 0) + 1
        self.context.forward(record.key, self.seen[record.key])


class Telling(Counting):
    """Counts, and tells at intervals of stream time what there is."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(7, self.tell)

    def process(self, record: Incoming) -> None:
        if record.key is not None:
            self.seen[record.key] = self.seen.get(record.key, 0) + 1

    def tell(self, time: int) -> None:
        for key, count in self.seen.items():
            self.context.forward(key, count)


class Once(Counting):
    """Has a timer that cancels itself, and one for each fifth record of a key."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.timer = context.schedule(5, self.first)

    def first(self, time: int) -> None:
        self.timer.cancel()
        for key in list(self.seen):
            self.context.forward(key, -time)

    def process(self, record: Incoming) -> None:
        super().process(record)
        if record.key is not None and self.seen[record.key] % 5 == 0:
            self.context.schedule(4, self.again)

    def again(self, time: int) -> None:
        for key in list(self.seen):
            self.context.forward(key, time, timestamp=time)
            if self.seen[key] > 10:
                del self.seen[key]


class Remembering(Processor):
    """Keeps values by time, and forwards those near each record."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.near = context.store("near")

    def process(self, record: Incoming) -> None:
        if record.key is None:
            return
        found = self.near.fetch(record.key, max(0, record.timestamp - 10), record.timestamp + 5)
        said = "".join(f"{time}:{value};" for time, value in found)[-LENGTH_MAX:]
        self.near.put(
            record.key, None if record.value is None else shown(record.value)[-9:], record.timestamp
        )
        self.context.forward(record.key, said, headers=(("n", str(len(found)).encode()), *record.headers))


class Same(Processor):
    """Forwards a record as it is, twice if it has a value."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Incoming) -> None:
        self.context.forward(record.key, record.value)
        if record.value is not None:
            self.context.forward(record.key, record.value, headers=(("twice", None),))


__all__ = [
    "BIG", "DAY", "INF", "LENGTH_MAX", "NAN", "OLD", "TINY", "WHEN", "Any", "App", "Counting", "Decimal",
    "HoppingWindow", "JoinWindow", "Level", "Made", "Once", "Part", "Point", "Processor", "SAMPLE", "Remembering",
    "Same", "SessionWindow", "SlidingWindow", "Status", "Store", "Telling", "TimeLimit", "TumblingWindow", "Value",
    "WindowClose", "WindowStore", "Windowed", "called", "chained", "date", "datetime", "paired", "shown", "within",
]  # fmt: skip
