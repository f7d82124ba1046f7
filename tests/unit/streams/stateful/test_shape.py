"""What of a topology a checkpoint depends on: every change of what is kept is refused by name, and no other."""

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.streams import (
    App,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    Store,
    TimeLimit,
    TumblingWindow,
    WindowClose,
    WindowStore,
    within,
)
from ottla.streams.lowering.flow import Flow
from ottla.streams.lowering.shape import difference, shape
from ottla.streams.plan.old_values import wants_old
from ottla.streams.processor import Processor


@dataclass
class Order:
    user: str
    city: str
    n: int


@dataclass
class Swapped:
    city: str
    user: str
    n: int


@dataclass
class Wider:
    user: str
    city: str
    n: int | None = None


class Two(enum.Enum):
    A = "a"
    B = "b"


class Three(enum.Enum):
    A = "a"
    B = "b"
    C = "c"


class Mine(Processor):
    def process(self, record: Any) -> None:
        pass


class Woken(Mine):
    wall_clock = True


Say = Callable[[App], Any]


def plus(value: Any, total: Any) -> Any:
    return total


def gathered(app: App, window: Any = None, value: Any = int, *, swap: bool = False) -> None:
    one, other = (app.stream(each, value=Order).group_by_key() for each in "ab")
    one, other = (other, one) if swap else (one, other)
    both = one.cogroup(plus, value=value).cogroup(other, plus)
    found: Any = both if window is None else both.windowed_by(window)
    found.aggregate(value, plus, name="it") if isinstance(window, SessionWindow) else found.aggregate(
        value, name="it"
    )


def grouped(app: App, how: str = "count", value: Any = int, key: Any = str) -> None:
    rows = app.table("t", value=Order, name="rows").group_by(lambda k, v: (key(), v.n), key=key, value=int)
    if how == "count":
        rows.count(name="it")
    elif how == "reduce":
        rows.reduce(plus, plus, name="it")
    else:
        rows.aggregate(value, plus, plus, value=value, name="it")


def shaped(say: Say, *, partitions: int = 2, updates: str = "all") -> Any:
    app = App("shape")
    say(app)
    plan = app.plan()
    context: Any = SimpleNamespace(wants_old=wants_old(plan), native=False, updates=updates)
    flow = Flow(plan, context)
    # As it is read back.
    return json.loads(json.dumps(shape(flow.remembered, flow.order, partitions, context), sort_keys=True))


def counted(app: App, value: Any = str, window: Any = None, emit: str = "update") -> None:
    grouped = app.stream("t", value=value).group_by_key()
    found: Any = grouped if window is None else grouped.windowed_by(window, emit=emit)
    found.count(name="it").to_stream(name="out") if emit == "update" else found.count(name="it")


def summed(app: App, how: str, value: Any = int) -> None:
    grouped = app.stream("t", value=int).group_by_key()
    if how == "reduce":
        grouped.reduce(lambda one, other: one + other, name="it")
    elif how == "aggregate":
        grouped.aggregate(value, lambda v, total: total + v, value=value, name="it")
    else:
        grouped.count(name="it")


def joined(
    app: App, left: Any = Order, right: Any = Order, swap: bool = False, how: str = "join", **more: Any
) -> None:
    one, other = app.stream("a", value=left), app.stream("b", value=right)
    one, other = (other, one) if swap else (one, other)
    getattr(one, how)(other, lambda a, b: "x", value=str, within=more.get("within", within(5)), name="it")


def tables(app: App, left: Any = Order, right: Any = Order, foreign: bool = False) -> None:
    one, other = app.table("a", value=left), app.table("b", value=right)
    if foreign:
        one.join(other, lambda a, b: "x", on=lambda v: v.user, value=str, name="it")
    else:
        one.join(other, lambda a, b: "x", value=str, name="it")


WINDOW = TumblingWindow(5)
SLIDING = SlidingWindow(5)


def looked_up(app: App, left: Any = Order, right: Any = Order) -> None:
    app.stream("a", value=left).join(app.table("b", value=right), lambda a, b: "x", value=str, name="it")


def written(app: App) -> None:
    app.stream("t").group_by_key().count(name="it").to("counts")


def kept(app: App, *stores: Any, make: Any = Mine, value: Any = int) -> None:
    app.stream("t").process(make, stores=stores, value=value, name="it")


def held(app: App, until: Any, value: Any = str) -> None:
    app.table("t", value=value).suppress(until, name="it")


def held_windows(app: App, window: Any) -> None:
    grouped = app.stream("t").group_by_key().windowed_by(window)
    grouped.count(name="counts").suppress(WindowClose(), name="it")


REFUSED: list[tuple[str, Say, Say]] = [
    ("method", lambda a: summed(a, "count"), lambda a: summed(a, "reduce")),
    ("method", lambda a: summed(a, "reduce"), lambda a: summed(a, "aggregate")),
    ("value", lambda a: summed(a, "aggregate", int), lambda a: summed(a, "aggregate", float)),
    ("window", lambda a: counted(a, window=WINDOW), lambda a: counted(a, window=TumblingWindow(5, grace=1))),
    ("window", lambda a: counted(a, window=TumblingWindow(5)), lambda a: counted(a, window=HoppingWindow(5, 5))),
    ("window", lambda a: counted(a, window=SessionWindow(5)), lambda a: counted(a, window=SessionWindow(6))),
    ("emit", lambda a: counted(a, window=WINDOW), lambda a: counted(a, window=WINDOW, emit="close")),
    ("window", lambda a: counted(a, window=SLIDING), lambda a: counted(a, window=SlidingWindow(6))),
    ("window", lambda a: counted(a, window=SLIDING), lambda a: counted(a, window=SlidingWindow(5, grace=1))),
    ("window", lambda a: counted(a, window=SLIDING), lambda a: counted(a, window=TumblingWindow(5))),
    ("emit", lambda a: counted(a, window=SLIDING), lambda a: counted(a, window=SLIDING, emit="close")),
    ("value", gathered, lambda a: gathered(a, value=float)),
    ("inputs", gathered, lambda a: gathered(a, swap=True)),
    ("window", lambda a: gathered(a, TumblingWindow(5)), lambda a: gathered(a, HoppingWindow(10, 5))),
    ("window", lambda a: gathered(a, SLIDING), lambda a: gathered(a, SlidingWindow(5, grace=1))),
    ("window", lambda a: gathered(a, SessionWindow(5)), lambda a: gathered(a, SessionWindow(6))),
    ("method", grouped, lambda a: grouped(a, "reduce")),
    ("method", lambda a: grouped(a, "aggregate"), lambda a: grouped(a, "reduce")),
    ("value", lambda a: grouped(a, "aggregate"), lambda a: grouped(a, "aggregate", float)),
    ("key", grouped, lambda a: grouped(a, key=int)),
    ("left", joined, lambda a: joined(a, left=Swapped)),
    ("right", joined, lambda a: joined(a, right=Swapped)),
    ("inputs", joined, lambda a: joined(a, swap=True)),
    ("how", joined, lambda a: joined(a, how="left_join")),
    ("window", joined, lambda a: joined(a, within=within(5, grace=1))),
    ("left", tables, lambda a: tables(a, left=Swapped)),
    ("right", tables, lambda a: tables(a, right=Swapped)),
    ("left", lambda a: tables(a, foreign=True), lambda a: tables(a, left=Swapped, foreign=True)),
    ("right", looked_up, lambda a: looked_up(a, right=Swapped)),
    ("store s", lambda a: kept(a, Store("s", str, int)), lambda a: kept(a, Store("s", str, str))),
    ("store s", lambda a: kept(a, Store("s", str, Order)), lambda a: kept(a, Store("s", str, Swapped))),
    ("store s", lambda a: kept(a, Store("s", str, str)), lambda a: kept(a, Store("s", str, Any))),
    ("store s", lambda a: kept(a, Store("s", str, int)), lambda a: kept(a, Store("s", str, int, ttl=5))),
    ("store s", lambda a: kept(a, Store("s")), lambda a: kept(a, WindowStore("s"))),
    ("store s", lambda a: kept(a, WindowStore("s")), lambda a: kept(a, WindowStore("s", retention=5))),
    ("stores", lambda a: kept(a, Store("s"), Store("t")), lambda a: kept(a, Store("t"), Store("s"))),
    ("clock", kept, lambda a: kept(a, make=Woken)),
    ("wait", lambda a: held(a, TimeLimit(5)), lambda a: held(a, TimeLimit(6))),
    ("value", lambda a: held(a, TimeLimit(5), Order), lambda a: held(a, TimeLimit(5), Swapped)),
    ("value", lambda a: held(a, TimeLimit(5), Wider), lambda a: held(a, TimeLimit(5), Order)),
    ("value", lambda a: held(a, TimeLimit(5), Three), lambda a: held(a, TimeLimit(5), Two)),
    ("wait", lambda a: held_windows(a, TumblingWindow(5)), lambda a: held_windows(a, TumblingWindow(5, grace=1))),
    ("span", lambda a: a.stream("t").distinct(name="it"), lambda a: a.stream("t").distinct(within=5, name="it")),
    (
        "key",
        lambda a: a.stream("t").distinct(name="it"),
        lambda a: a.stream("t", key=int).distinct(name="it"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "before", "after"), REFUSED, ids=[f"{n}-{row[0]}" for n, row in enumerate(REFUSED)]
)
def test_another_state_is_refused_by_its_operator(what: str, before: Say, after: Say) -> None:
    said = difference(shaped(before), shaped(after))
    assert said is not None and "has another" in said
    # What comes before an operator may be the first to differ.
    assert f"it has another {what}: " in said or said.startswith(("table-", "counts has another window"))
    assert difference(shaped(before), shaped(before)) is None


SAFE: list[tuple[Say, Say]] = [
    # What nobody keeps.
    (lambda a: counted(a, value=Order), lambda a: counted(a, value=Swapped)),
    (looked_up, lambda a: looked_up(a, left=Swapped)),
    (lambda a: kept(a, Store("s")), lambda a: kept(a, Store("s"), value=str)),
    # What is looked at anew.
    (
        lambda a: held(a, TimeLimit(5, records_max=1, when_full="fail")),
        lambda a: held(a, TimeLimit(5, records_max=9)),
    ),
    # What is wider.
    (lambda a: held(a, TimeLimit(5), Order), lambda a: held(a, TimeLimit(5), Wider)),
    (lambda a: held(a, TimeLimit(5), Two), lambda a: held(a, TimeLimit(5), Three)),
    # What keeps no state.
    (written, lambda a: (a.stream("t").map_values(len).to("o"), written(a))),
]


@pytest.mark.parametrize(("before", "after"), SAFE, ids=range(len(SAFE)))
def test_what_is_not_kept_may_change(before: Say, after: Say) -> None:
    assert difference(shaped(before), shaped(after)) is None


def test_where_spark_finds_progress_and_state_is_the_same_whatever_ends_there_are() -> None:
    def two(app: App, *, more: bool) -> None:
        one, other = app.stream("a"), app.stream("b")
        first, second = one.group_by_key().count(name="first"), other.group_by_key().count(name="second")
        if more:
            second.to_stream().map_values(lambda v: v + 1).to("more")
            other.to("raw")
        first.to("x")
        second.to("y")

    assert difference(shaped(lambda a: two(a, more=False)), shaped(lambda a: two(a, more=True))) is None

    def merging(app: App, *, merged: bool) -> None:
        one, other = app.stream("a"), app.stream("b")
        one.to("x")
        (one.merge(other) if merged else other).group_by_key().count(name="it").to("y")

    # The source `a` was read apart from what keeps state, and is not any more.
    before, after = (shaped(lambda a, m=merged: merging(a, merged=m)) for merged in (False, True))
    assert before["order"][:2] == ["source stream-1", "source stream-2"] == after["order"][:2]

    def later(app: App, *, merged: bool) -> None:
        one, other = app.stream("a"), app.stream("b")
        other.to("x")
        (one.merge(other) if merged else one).group_by_key().count(name="it").to("y")

    before, after = (shaped(lambda a, m=merged: later(a, merged=m)) for merged in (False, True))
    assert difference(before, after) == "its operators stand in another order"


def test_the_whole_is_compared() -> None:
    found = shaped(counted)
    assert difference(found, shaped(counted, partitions=3)) == "its state is in 2 partitions, not 3"
    assert difference(found, shaped(counted, updates="last")) == "updates is 'last', and was 'all'"
    older = {**found, "version": 1}
    assert difference(older, found) == "another version of Ottla wrote it, whose state has another form"
    more = shaped(lambda a: (counted(a), a.stream("t").distinct(name="more")))
    assert difference(found, more) == "more (distinct) is new"
    assert difference(more, found) == "more (distinct) is gone"
    other = {**more, "order": more["order"][::-1]}
    assert difference(other, more) == "its operators stand in another order"
