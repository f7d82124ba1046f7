"""Processors on the reference: stores, timers, and where micro-batches end."""

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import pytest

from ottla.client.record import Record
from ottla.streams import App, Processor, Store, WindowStore
from ottla.streams.errors import FunctionFailed
from ottla.streams.reference.interpreter import Interpreter

Seen = list[tuple[Any, Any, int]]


def run(make: Any, *stores: Any, given: list[Any], batches: int = 1, **options: Any) -> Seen:
    app = App("processors")
    app.stream("in", value=int).process(make, stores=stores, name="mine", **options).to("out")
    written = app.test({"in": given}, batches=batches)
    return [(each.key, each.value, each.timestamp) for each in written.get("out", ())]


class Summing(Processor):
    def init(self, context: Any) -> None:
        self.context = context
        self.sums = context.store("sums")

    def process(self, record: Any) -> None:
        self.sums[record.key] = self.sums.get(record.key, 0) + record.value
        self.context.forward(record.key, self.sums[record.key])


SUMS = Store("sums", str, int)
BATCHES = [1, 2, 3, 5]


@pytest.mark.parametrize("batches", BATCHES)
def test_a_store_remembers_and_a_record_goes_on_with_its_time(batches: int) -> None:
    given = [("a", 1, 5), ("b", 10, 6), ("a", 2, 3)]
    assert run(Summing, SUMS, given=given, batches=batches) == [("a", 1, 5), ("b", 10, 6), ("a", 3, 3)]


@pytest.mark.parametrize("batches", BATCHES)
def test_what_is_written_with_a_time_to_live_is_forgotten(batches: int) -> None:
    given = [("a", 1, 0), ("a", 1, 10), ("a", 1, 21), ("a", 1, 22), ("b", 1, 300)]
    made = run(Summing, Store("sums", str, int, ttl=10), given=given, batches=batches)
    assert [value for _, value, _ in made] == [1, 2, 1, 2, 1]


def test_a_store_is_like_a_dict() -> None:
    found: list[Any] = []

    class Looking(Processor):
        def init(self, context: Any) -> None:
            store = context.store("sums")
            for key, value in (("c", 3), ("a", 1), ("b", 2)):
                store[key] = value
            found.extend(
                [
                    list(store.items()),
                    list(store.range("b", "c")),
                    list(store),
                    store.pop("a"),
                    store.pop("a", 7),
                ]
            )
            found.extend([store.setdefault("a", 8), store.setdefault("b", 9), store["c"], "d" in store])
            del store["c"], store["nothing"]
            with pytest.raises(KeyError):
                store["c"]

        def process(self, record: Any) -> None:
            pass

    run(Looking, SUMS, given=[("a", 1)])
    everything = [("a", 1), ("b", 2), ("c", 3)]
    assert found == [everything, everything[1:], ["a", "b", "c"], 1, 7, 8, 2, 3, False]


@pytest.mark.parametrize("batches", BATCHES)
def test_a_window_store_is_read_by_time_and_forgets(batches: int) -> None:
    class Recent(Processor):
        def init(self, context: Any) -> None:
            self.context = context
            self.times = context.store("times")

        def process(self, record: Any) -> None:
            self.times.put(record.key, record.value, record.timestamp)
            near = self.times.fetch(record.key, record.timestamp - 10, record.timestamp)
            assert self.times.get(record.key, -1) is None
            self.context.forward(record.key, sum(value for _, value in near))
            if record.value == 8:
                assert [each[0] for each in self.times.items()] == ["b"]

    store = WindowStore("times", str, int, retention="20 ms")
    given = [("a", 1, 0), ("a", 2, 10), ("a", 4, 11), ("b", 8, 60), ("a", 16, 12)]
    assert [value for _, value, _ in run(Recent, store, given=given, batches=batches)] == [1, 3, 6, 8, 0]


# Timers


class Ticking(Processor):
    def init(self, context: Any) -> None:
        self.context = context
        self.timer = context.schedule(10, self.tick)

    def process(self, record: Any) -> None:
        self.context.forward("record", record.value)

    def tick(self, time: int) -> None:
        self.context.forward("tick", time, headers=(("h", b"v"),))


GIVEN = [("a", 1, 3), ("a", 2, 9), ("a", 3, 10), ("a", 4, 35), ("a", 5, 41)]


@pytest.mark.parametrize("batches", BATCHES)
def test_stream_time_ticks_after_the_record_that_moved_it(batches: int) -> None:
    ticks = [each for each in run(Ticking, given=GIVEN, batches=batches) if each[0] == "tick"]
    assert ticks == [("tick", time, time) for time in (3, 10, 35, 41)]


@pytest.mark.parametrize("batches", BATCHES)
def test_a_timer_that_is_cancelled_in_its_callback_is_called_no_more(batches: int) -> None:
    class Once(Ticking):
        def tick(self, time: int) -> None:
            super().tick(time)
            self.timer.cancel()

    ticks = [each for each in run(Once, given=GIVEN, batches=batches) if each[0] == "tick"]
    assert ticks == [("tick", 3, 3)]


@pytest.mark.parametrize("batches", BATCHES)
def test_a_timer_of_a_record_stays(batches: int) -> None:
    class Asked(Ticking):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: Any) -> None:
            if record.value == 2:
                self.context.schedule(10, self.tick)

    assert run(Asked, given=GIVEN, batches=batches) == [("tick", time, time) for time in (9, 10, 35, 41)]


def test_of_timers_that_are_due_the_earliest_goes_first() -> None:
    class Two(Processor):
        def init(self, context: Any) -> None:
            self.context = context
            context.schedule(7, lambda time: context.forward("seven", time))
            context.schedule(5, lambda time: context.forward("five", time))

        def process(self, record: Any) -> None:
            pass

    names = [key for key, _, _ in run(Two, given=[("a", 1, 1), ("a", 2, 20)])]
    assert names == ["seven", "five", "five", "seven"]


class Waking(Processor):
    wall_clock: ClassVar[bool] = True

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule("1 second", self.tick, clock="wall")

    def process(self, record: Any) -> None:
        self.context.forward("now", self.context.now)

    def tick(self, time: int) -> None:
        self.context.forward("tick", time)


def test_the_clock_on_the_wall_goes_on_when_it_is_told_to() -> None:
    app = App("waking")
    app.stream("in", value=int).process(Waking).to("out")
    running = Interpreter(app.plan(), now=5_000)

    def made(written: Any) -> Seen:
        return [(each.record.key, each.record.value, each.record.timestamp) for each in written]

    offsets = count()
    assert made(running.feed(Record("in", 0, next(offsets), 7, b"a", bytes(8)))) == [("now", 5_000, 7)]
    assert made(running.advance_wall_clock(999)) == []
    assert made(running.advance_wall_clock(2_401)) == [("tick", 8_400, 8_400)]
    assert made(running.feed(Record("in", 0, next(offsets), 8, b"a", bytes(8)))) == [("now", 8_400, 8)]
    assert made(running.advance_wall_clock(599)) == []
    assert made(running.advance_wall_clock(1)) == [("tick", 9_000, 9_000)]


def test_a_test_has_no_clock_on_the_wall() -> None:
    assert run(Waking, given=[("a", 1, 5)]) == [("now", -1, 5)]


# What goes wrong

WRONG: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda context, record: 1 / 0, "mine: ZeroDivisionError: division by zero, on the record in-0@0"),
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
    (lambda context, record: context.schedule(1, print, clock="sun"), "mine: there is no clock 'sun'"),
    (
        lambda context, record: context.schedule(0, print),
        "mine: the interval 0 is shorter than a millisecond",
    ),
    (lambda context, record: context.schedule("soon", print), "mine: interval: 'soon' is no span of time"),
    (
        lambda context, record: context.store("sums").get(5),
        "sums: the key is wrong: 5 is a int, not a str",
    ),
    (
        lambda context, record: context.store("sums").__setitem__("a", None),
        "sums: None is no value of a store",
    ),
]


@pytest.mark.parametrize("n", range(len(WRONG)))
def test_what_goes_wrong_names_the_operator(n: int) -> None:
    what, said = WRONG[n]

    class Wrong(Processor):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: Any) -> None:
            what(self.context, record)

    with pytest.raises(FunctionFailed) as failed:
        run(Wrong, SUMS, given=[("a", 1, 1)])
    assert str(failed.value).startswith(said)


def test_process_values_keeps_keys() -> None:
    class Renaming(Summing):
        def process(self, record: Any) -> None:
            self.context.forward("other", 1)

    app = App("values")
    app.stream("in", value=int).process_values(Renaming, stores=[SUMS]).to("out")
    with pytest.raises(FunctionFailed, match="under the key that they came with"):
        app.test({"in": [("a", 1)]})
