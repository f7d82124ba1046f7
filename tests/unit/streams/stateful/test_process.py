"""Processors of users: stores, timers, what they may forward, and what goes wrong in them."""

from typing import Any

import pytest

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.stateful.process import Process
from ottla.streams.processor import Incoming, Processor, ProcessorContext
from ottla.streams.stores import Store, WindowStore
from ottla.streams.types.build import type_of
from tests.unit.streams.stateful.driver import Driver, record, run

TEXT, WHOLE = type_of(str), type_of(int)


def process(make: Any, *stores: Any, values_only: bool = False, now: int = -1) -> Any:
    def operator() -> Process:
        made = Process(
            "mine",
            "app.py:7",
            make,
            stores,
            (TEXT, WHOLE, TEXT, WHOLE),
            values_only=values_only,
            wall_clock=make().wall_clock,
        )
        made.now = now
        return made

    return operator


class Summing(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.sums = context.store("sums")

    def process(self, record: Incoming) -> None:
        self.sums[record.key] = self.sums.get(record.key, 0) + record.value
        self.context.forward(record.key, self.sums[record.key])


SUMS = Store("sums", str, int)


def test_a_store_remembers_and_a_record_goes_on_with_its_time() -> None:
    given = [record("a", 1, 5), record("b", 10, 6), record("a", 2, 3)]
    assert run(process(Summing, SUMS), given, [1]) == [("a", 1, 5), ("b", 10, 6), ("a", 3, 3)]


class Dictionary(Processor):
    """Says what it finds."""

    found: list[Any] = []  # noqa: RUF012

    def init(self, context: ProcessorContext) -> None:
        store = context.store("sums")
        if "a" in store:
            Dictionary.found = [
                list(store.items()),
                list(store.range("b", "c")),
                list(store),
                store.pop("a"),
                store.pop("a", 7),
                store.setdefault("a", 8),
                store.setdefault("b", 9),
                store["c"],
                "d" in store,
            ]
            del store["c"]
            with pytest.raises(KeyError):
                store["c"]
        else:
            for key, value in (("c", 3), ("a", 1), ("b", 2)):
                store[key] = value

    def process(self, record: Incoming) -> None:
        pass


def test_a_store_is_like_a_dict() -> None:
    driver = Driver(process(Dictionary, SUMS))
    driver.batch([])
    driver.batch([])
    everything = [("a", 1), ("b", 2), ("c", 3)]
    assert Dictionary.found == [everything, everything[1:], ["a", "b", "c"], 1, 7, 8, 2, 3, False]
    assert driver.entries("rows-sums") == 2


def test_what_is_written_with_a_time_to_live_is_forgotten() -> None:
    store = Store("sums", str, int, ttl_ms=10)
    given = [
        record("a", 1, 0),
        record("a", 1, 10),
        record("a", 1, 21),
        record("a", 1, 22),
        record("b", 1, 300),
    ]
    driver = Driver(process(Summing, store))
    made = [each.value for one in given for each in driver.batch([one])]
    assert made == [1, 2, 1, 2, 1]
    assert made == [value for _, value, _ in run(process(Summing, store), given)]
    assert driver.entries("rows-sums") == 1


class Recent(Processor):
    """Forwards how much came within the last 10, from a store by time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.times = context.store("times")

    def process(self, record: Incoming) -> None:
        self.times.put(record.key, record.value, record.timestamp)
        near = self.times.fetch(record.key, record.timestamp - 10, record.timestamp)
        self.context.forward(record.key, sum(value for _, value in near))


def test_a_window_store_is_read_by_time_and_forgets() -> None:
    store = WindowStore("times", str, int, retention="20 ms")
    driver = Driver(process(Recent, store))
    given = [
        record("a", 1, 0),
        record("a", 2, 10),
        record("a", 4, 11),
        record("b", 8, 60),
        record("a", 16, 12),
    ]
    assert [each.value for one in given for each in driver.batch([one])] == [1, 3, 6, 8, 0]
    assert driver.entries("rows-times") == 1


class Ticking(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.timer = context.schedule(10, self.tick)

    def process(self, record: Incoming) -> None:
        self.context.forward("record", record.value)
        if record.value == 0:
            self.timer.cancel()

    def tick(self, time: int) -> None:
        self.context.forward("tick", time, headers=(("h", b"v"),))


def test_stream_time_ticks_after_the_record_that_moved_it() -> None:
    given = [record("a", 1, 3), record("a", 2, 9), record("a", 3, 10), record("a", 4, 35), record("a", 5, 41)]
    expected = [
        ("record", 1, 3),
        ("tick", 3, 3),
        ("record", 2, 9),
        ("record", 3, 10),
        ("tick", 10, 10),
        ("record", 4, 35),
        ("tick", 35, 35),
        ("record", 5, 41),
        ("tick", 41, 41),
    ]
    assert run(process(Ticking), given) == expected
    assert run(process(Ticking), given, [1, 2, 3, 4]) == expected


def test_a_timer_that_is_cancelled_is_silent() -> None:
    assert run(process(Ticking), [record("a", 0, 3), record("a", 0, 99)]) == [
        ("record", 0, 3),
        ("record", 0, 99),
    ]


class Waking(Processor):
    wall_clock = True

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("1 second", self.tick, clock="wall")

    def process(self, record: Incoming) -> None:
        pass

    def tick(self, time: int) -> None:
        self.context.forward("tick", time)


def test_the_clock_on_the_wall_wakes_a_processor() -> None:
    driver = Driver(process(Waking, now=5_000))
    operator = driver.make()
    assert driver.batch([record("a", 1, 0)]) == []
    driver.make = process(Waking, now=5_999)
    assert driver.batch([]) == []
    driver.make = process(Waking, now=8_400)
    assert [(each.key, each.value, each.timestamp) for each in driver.batch([])] == [("tick", 8_400, 8_400)]
    driver.make = process(Waking, now=8_999)
    assert driver.batch([]) == []
    driver.make = process(Waking, now=9_000)
    assert len(driver.batch([])) == 1
    assert operator.wall_clock


def test_a_processor_says_when_it_wants_to_be_woken() -> None:
    from ottla.streams.lowering.stateful.store import MemoryBacking
    from ottla.streams.lowering.stateful.store import Store as Kept

    operator = process(Waking, now=5_000)()
    operator.open({"timers": Kept(MemoryBacking())})
    operator.finish()
    assert operator.alarms() == [6_000]


class Wrong(Processor):
    what: Any = None

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Incoming) -> None:
        type(self).what(self.context, record)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda context, record: 1 / 0, "mine: ZeroDivisionError: division by zero"),
        (
            lambda context, record: context.forward("a", "x"),
            "mine: forwarded the wrong value: 'x' is a str, not an int",
        ),
        (
            lambda context, record: context.store("none"),
            "mine: there is no store 'none'; the operator was given sums",
        ),
        (
            lambda context, record: context.schedule(1, print, clock="wall"),
            "mine: clock='wall' needs wall_clock = True",
        ),
        (
            lambda context, record: context.schedule(0, print),
            "mine: the interval 0 is shorter than a millisecond",
        ),
        (
            lambda context, record: context.store("sums").get(5),
            "sums: the key is wrong: 5 is a int, not a str",
        ),
    ],
)
def test_what_goes_wrong_names_the_operator(what: Any, said: str) -> None:
    class This(Wrong):
        pass

    This.what = staticmethod(what)
    with pytest.raises(FunctionFailed) as failed:
        run(process(This, SUMS), [record("a", 1, 1)])
    assert str(failed.value).startswith(said)


def test_process_values_keeps_keys() -> None:
    class Renaming(Summing):
        def process(self, record: Incoming) -> None:
            self.context.forward("other", 1)

    assert run(process(Summing, SUMS, values_only=True), [record("a", 1, 1)]) == [("a", 1, 1)]
    with pytest.raises(FunctionFailed, match="under the key that they came with"):
        run(process(Renaming, SUMS, values_only=True), [record("a", 1, 1)])
