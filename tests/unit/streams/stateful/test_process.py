"""Processors of users: stores, timers, what they may forward, and what goes wrong in them."""

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    records = [record("a", 1, 5), record("b", 10, 6), record("a", 2, 3)]
    assert run(process(Summing, SUMS), records, [1]) == [("a", 1, 5), ("b", 10, 6), ("a", 3, 3)]


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
    store = Store("sums", str, int, ttl=10)
    records = [
        record("a", 1, 0),
        record("a", 1, 10),
        record("a", 1, 21),
        record("a", 1, 22),
        record("b", 1, 300),
    ]
    driver = Driver(process(Summing, store))
    made = [each.value for one in records for each in driver.batch([one])]
    assert made == [1, 2, 1, 2, 1]
    assert made == [value for _, value, _ in run(process(Summing, store), records)]
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
    records = [
        record("a", 1, 0),
        record("a", 2, 10),
        record("a", 4, 11),
        record("b", 8, 60),
        record("a", 16, 12),
    ]
    assert [each.value for one in records for each in driver.batch([one])] == [1, 3, 6, 8, 0]
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
    records = [
        record("a", 1, 3),
        record("a", 2, 9),
        record("a", 3, 10),
        record("a", 4, 35),
        record("a", 5, 41),
    ]
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
    assert run(process(Ticking), records) == expected
    assert run(process(Ticking), records, [1, 2, 3, 4]) == expected


def test_a_timer_that_is_cancelled_is_silent() -> None:
    assert run(process(Ticking), [record("a", 0, 3), record("a", 0, 99)]) == [
        ("record", 0, 3),
        ("record", 0, 99),
    ]


class Once(Processor):
    """Its timers are cancelled by their own callbacks, or by another's."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.slow = context.schedule(10, self.tick)
        self.fast = context.schedule(4, self.tock)

    def process(self, record: Incoming) -> None:
        self.context.forward("record", record.value)

    def tick(self, time: int) -> None:
        self.context.forward("tick", time)
        self.slow.cancel()

    def tock(self, time: int) -> None:
        self.context.forward("tock", time)
        if time >= 20:
            self.fast.cancel()


def test_a_timer_may_cancel_itself_for_good() -> None:
    records = [record("a", n, 7 * n) for n in range(1, 6)]
    expected = [
        ("record", 1, 7),
        ("tick", 7, 7),
        ("tock", 7, 7),
        ("record", 2, 14),
        ("tock", 14, 14),
        ("record", 3, 21),
        ("tock", 21, 21),
        ("record", 4, 28),
        ("record", 5, 35),
    ]
    assert run(process(Once), records) == expected
    assert run(process(Once), records, [1, 2, 3, 4]) == expected


class Later(Processor):
    """Schedules as records come: methods, functions with what they know, and functions that cancel themselves."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.sums = context.store("sums")

    def process(self, record: Incoming) -> None:
        if record.value == 0:
            self.context.schedule(10, self.tick)
        elif record.value == 1:
            self.context.schedule(10, lambda time: self.context.forward(f"{record.key}!", time))
        elif record.value == 2:
            seen: list[int] = []

            def thrice(time: int) -> None:
                seen.append(time)
                self.context.forward("seen", len(seen))
                if len(seen) == 3:
                    timer.cancel()

            timer = self.context.schedule(3, thrice)

    def tick(self, time: int) -> None:
        self.sums["ticks"] = self.sums.get("ticks", 0) + 1
        self.context.forward("ticks", self.sums["ticks"])


def test_what_is_scheduled_for_a_record_goes_on_in_later_micro_batches() -> None:
    records = [
        record("a", 0, 3),
        record("b", 1, 5),
        record("c", 9, 12),
        record("d", 9, 25),
        record("e", 9, 40),
    ]
    expected = [
        ("ticks", 1, 3),
        ("b!", 5, 5),
        ("ticks", 2, 12),
        ("b!", 12, 12),
        ("ticks", 3, 25),
        ("b!", 25, 25),
        ("ticks", 4, 40),
        ("b!", 40, 40),
    ]
    assert run(process(Later, SUMS), records) == expected
    assert run(process(Later, SUMS), records, [1, 2, 3, 4]) == expected


def test_what_is_due_first_goes_first() -> None:
    class Two(Once):
        def tick(self, time: int) -> None:
            self.context.forward("tick", time)

    records = [record("a", 1, 0), record("a", 2, 35)]
    # Due at 4 comes before due at 10.
    assert [key for key, *_ in run(process(Two), records)] == [
        "record",
        "tick",
        "tock",
        "record",
        "tock",
        "tick",
    ]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.integers(0, 60)), max_size=14),
    cuts=st.lists(st.integers(1, 14), max_size=5),
)
def test_timers_do_not_depend_on_micro_batches(rows: list[tuple[str, int, int]], cuts: list[int]) -> None:
    records = [record(*row) for row in rows]
    for make in (Once, Later, Ticking):
        stores = (SUMS,) if make is Later else ()
        assert run(process(make, *stores), records, cuts) == run(process(make, *stores), records)


def test_a_callback_that_cannot_be_kept_is_named() -> None:
    class Wrong(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Incoming) -> None:
            lock = threading.Lock()
            self.context.schedule(10, lambda time: lock.release() if lock.locked() else None)

    with pytest.raises(
        FunctionFailed, match="the callback of a timer that was scheduled outside of init cannot"
    ):
        run(process(Wrong), [record("a", 1, 1)])


def entries(driver: Driver) -> tuple[int, int]:
    """How many rows are kept, and how many bytes, in all stores."""
    every = [each.entries for each in driver.backings.values()]
    return sum(map(len, every)), sum(len(key) + len(data) for each in every for key, data in each.items())


class Touching(Processor):
    """Writes, overwrites and deletes one key again and again."""

    def init(self, context: ProcessorContext) -> None:
        self.kept, self.times = context.store("kept"), context.store("times")

    def process(self, record: Incoming) -> None:
        self.kept[record.key] = record.value
        self.times.put(record.key, record.value, record.timestamp // 1000 * 1000)
        if record.value % 3 == 0:
            del self.kept[record.key]
            self.times.put(record.key, None, record.timestamp // 1000 * 1000)


def test_what_a_store_keeps_grows_with_keys_and_not_with_updates() -> None:
    stores = Store("kept", str, int, ttl=3_600_000), WindowStore("times", str, int, retention="1 hour")
    driver = Driver(process(Touching, *stores))
    for start in range(0, 100_000, 2_000):
        driver.batch([record("a", n, n) for n in range(start, start + 2_000)])
    rows, size = entries(driver)
    assert rows <= 8 and size < 3_000
    # A day later nothing is left but the times.
    driver.batch([record("b", 1, 86_400_000)])
    driver.batch([record("b", 1, 2 * 86_400_000)])
    assert driver.entries("rows-kept") == driver.entries("rows-times") == 1


@pytest.mark.parametrize("updates", [2, 40])
def test_what_a_store_keeps_is_proportional_to_its_keys(updates: int) -> None:
    stores = Store("kept", str, int, ttl=3_600_000), WindowStore("times", str, int, retention="1 hour")
    sizes = {}
    for keys in (100, 1_000, 4_000):
        driver = Driver(process(Touching, *stores))
        for turn in range(updates):
            driver.batch([record(f"key-{n:05}", 3 * n + 1, turn * 1000 + n % 1000) for n in range(keys)])
        rows, size = entries(driver)
        sizes[keys] = size
        assert 2 * keys <= rows <= 2 * keys + 2 * updates + 16
        assert driver.entries("rows-kept") == driver.entries("rows-times") == keys
        if keys > 100:
            assert size < 1.3 * sizes[100] * keys / 100
    # Times in a window store are what is kept of a key, once for each second; the rest does not grow with updates.
    assert sizes[4_000] < 4_000 * (250 + 30 * updates)


TTL = Store("sums", str, int, ttl=10)


class Forgetful(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.sums, self.times = context.store("sums"), context.store("times")

    def process(self, record: Incoming) -> None:
        key, value = record.key, record.value
        if value == 0:
            self.sums.pop(key)
            self.times.put(key, None, record.timestamp)
        else:
            self.sums[key] = self.sums.get(key, 0) + value
            self.times.put(key, value, record.timestamp)
        self.context.forward(key, sum(total for _, total in self.sums.items()))
        self.context.forward(key, sum(each for *_, each in self.times.items()))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 60)), max_size=14),
    cuts=st.lists(st.integers(1, 14), max_size=5),
)
def test_forgetting_does_not_depend_on_micro_batches(
    rows: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    records = [record(*row) for row in rows]
    stores = TTL, WindowStore("times", str, int, retention="20 ms")
    assert run(process(Forgetful, *stores), records, cuts) == run(process(Forgetful, *stores), records)


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
