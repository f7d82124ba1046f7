"""Processors with stores, and with timers by stream time."""

from collections.abc import Callable
from dataclasses import replace

from ottla.streams import App, Processor, Store
from ottla.streams.processor import Incoming, ProcessorContext, Timer
from tests.compat.streams.comparison import ONE, Comparisons
from tests.compat.streams.texts import number, pair

PROCESSORS = Comparisons()

# What is distinct within a span forgets what is two spans ago.
NOT_LATER_THAN_THE_SPAN = replace(ONE, late_ms_max=20)


class Keeping(Processor):
    """What processors share: a context, and a store of texts."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.rows = context.store("rows")


class Rising(Keeping):
    """Forwards a value when it is higher than the one before it."""

    def process(self, record: Incoming) -> None:
        if record.key is None or record.value is None:
            return
        before = self.rows.get(record.key)
        if before is not None and number(record.value) > number(before):
            self.context.forward(record.key, f"{before}<{record.value}")
        self.rows[record.key] = record.value


class Totals(Keeping):
    """Counts each key, and tells all counts every 25 ms of stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(25, self.tell)

    def process(self, record: Incoming) -> None:
        key = "null" if record.key is None else record.key
        self.rows[key] = str(int(self.rows.get(key, "0")) + 1)

    def tell(self, time: int) -> None:
        for key, count in list(self.rows.items()):
            self.context.forward(key, f"{count}@{time}")
            if int(count) > 5:
                del self.rows[key]


class ThreeTimes(Keeping):
    """Tells the time three times, and then no more."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.timer = context.schedule(10, self.tell)

    def process(self, record: Incoming) -> None:
        pass

    def tell(self, time: int) -> None:
        calls = int(self.rows.get("calls", "0")) + 1
        self.rows["calls"] = str(calls)
        self.context.forward("call", f"{calls}@{time}")
        if calls == 3:
            self.timer.cancel()


class Reminder(Keeping):
    """Schedules, with every seventh record, a timer that is called twice."""

    records = 0

    def process(self, record: Incoming) -> None:
        self.records += 1
        if self.records % 7 == 0:
            Twice(self.context, f"r{self.records}")


class Twice:
    """A timer that cancels itself when it is called for the second time."""

    def __init__(self, context: ProcessorContext, name: str) -> None:
        self.context = context
        self.name = name
        self.calls = 0
        self.timer: Timer | None = context.schedule(40, self.call)

    def call(self, time: int) -> None:
        self.context.forward(self.name, f"@{time}")
        self.calls += 1
        if self.calls == 2:
            assert self.timer is not None
            self.timer.cancel()


class Pairs(Keeping):
    """Forwards each value with the one before it."""

    def process(self, record: Incoming) -> None:
        if record.key is None:
            return
        self.context.forward(record.key, pair(self.rows.get(record.key), record.value))
        if record.value is None:
            self.rows.pop(record.key)
        else:
            self.rows[record.key] = record.value


class First(Keeping):
    """Forwards the first record of each key and value."""

    def process(self, record: Incoming) -> None:
        name = f"{record.key}{record.value}"
        if record.key is not None and name not in self.rows:
            self.rows[name] = ""
            self.context.forward(record.key, record.value)


def processed(app: App, processor: Callable[[], Processor]) -> None:
    app.stream("in").process(processor, stores=[Store("rows", str, str)], name="keeping").to("out")


@PROCESSORS.add()
def processor_with_a_store(app: App) -> None:
    processed(app, Rising)


@PROCESSORS.add()
def processor_with_a_timer(app: App) -> None:
    processed(app, Totals)


@PROCESSORS.add()
def processor_that_cancels(app: App) -> None:
    processed(app, ThreeTimes)


@PROCESSORS.add()
def processor_that_schedules(app: App) -> None:
    processed(app, Reminder)


@PROCESSORS.add()
def processor_of_values(app: App) -> None:
    app.stream("in").process_values(Pairs, stores=[Store("rows", str, str)], name="keeping").to("out")


@PROCESSORS.add()
def first_of_each_key(app: App) -> None:
    processed(app, First)


@PROCESSORS.add(NOT_LATER_THAN_THE_SPAN)
def first_within_a_span(app: App) -> None:
    app.stream("in").distinct(within=20).to("out")
