"""What is said of who computes what is what is done: the lowering is watched at work, without Spark."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.streams import App, TimeLimit, within
from ottla.streams.computing import Computing
from ottla.streams.lowering import execution
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.flow import End, Flow
from ottla.streams.plan.node import Node
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.sinks import SINKS
from ottla.streams.plan.topology import Plan
from tests.unit.streams.stateful.test_chain import everything, marked


def straight(app: App) -> None:
    app.stream("t").filter(lambda v: v != "x").map_values(lambda v: v + "!").to("o")


def parting(app: App) -> None:
    stream = app.stream("t", value=int).map_values(lambda v: v + 1)
    small, large = stream.branch(lambda v: v < 5, lambda v: v > 4)
    small.to("o")
    large.map_values(lambda v: -v).merge(small).to(lambda k, v: k)


def parting_late(app: App) -> None:
    stream = app.stream("t", value=int).map_values(lambda v: v + 1)
    stream.flat_map_values(lambda v: [v]).to("o")
    stream.filter(lambda v: v > 1).to("p")


def parting_by_python(app: App) -> None:
    stream = app.stream("t", value=int)
    stream.map_values(lambda v: v + 1 if v else 0, value=int).to("o")
    stream.filter(lambda v: v > 1).for_each(print)


def twice(app: App) -> None:
    stream = app.stream("t").map_values(lambda v: v + "!")
    stream.merge(stream).select_key(lambda v: v).to("o")


def keys(app: App) -> None:
    stream = app.stream("t", value=Any)
    stream.select_key(lambda v: v, key=Any).to("o")
    stream.filter(lambda k, v: k != "x").to("p")


def loose(app: App) -> None:
    stream = app.stream("t", value=int, timestamp=lambda v: v)
    stream.filter(lambda v: v > 1)
    stream.map_values(lambda v: v + 1)


def tables(app: App) -> None:
    table = app.table("t", value=int)
    table.map_values(lambda v: v + 1).to("o")
    app.table("u", value=int).filter(lambda v: v > 1).map_values(lambda v: v + 1).to("p")
    table.join(app.table("v"), lambda a, b: a, on=lambda v: "x").map_values(lambda v: v + 1).to("q")


def held(app: App) -> None:
    stream = app.stream("t", value=int)
    stream.filter(lambda v: v > 1).to_table().map_values(lambda v: v + 1).suppress(TimeLimit(5)).to("o")
    stream.left_join(app.global_table("g"), lambda v, row: v).map_values(lambda v: v + 1).to("p")


def joined(app: App) -> None:
    one, two = app.stream("t", value=int), app.stream("u", value=int)
    both = one.map_values(lambda v: v + 1).join(
        two.filter(lambda v: v > 1), lambda a, b: a + b, within=within(5)
    )
    both.map_values(lambda v: v + 1).group_by(lambda v: "all").count().to_stream().filter(lambda v: v > 1).to(
        "o"
    )


def counted(app: App) -> None:
    stream = app.stream("t", value=int).map_values(lambda v: v + 1)
    counts = stream.group_by(lambda v: "all").count().to_stream()
    counts.filter(lambda v: v > 1).to("o")
    counts.map_values(lambda v: v + 1 if v else v, value=int).to("p")


SAID: list[Callable[[App], None]] = [
    straight, parting, parting_late, parting_by_python, twice, keys, loose, tables, held, joined, counted, marked,
    everything,
]  # fmt: skip


class Watched:
    """The lowering of a plan, and the operators that it leaves to Python because of where they stand."""

    def __init__(self, plan: Plan, monkeypatch: pytest.MonkeyPatch, *, letters: bool, native: bool) -> None:
        self.found: set[Node] = set()
        nothing = SimpleNamespace(union=lambda other: None)
        watched = {
            "clock": self.found.add,
            "paths_from": self._paths_from,
            **dict.fromkeys(
                ("decode", "readable", "lower_to_table", "chained", "native_count"), _given(nothing)
            ),
            **dict.fromkeys(("column_fan_out", "OriginPass"), _given(nothing)),
        }
        for name, call in watched.items():
            monkeypatch.setattr(execution, name, call)
        monkeypatch.setattr(execution, "Lowered", lambda _: SimpleNamespace(frame=_given(nothing)))
        for name in ("_passed", "_arrived", "_through_stages"):
            monkeypatch.setattr(execution.Execution, name, _given(nothing))
        spark: Any = None
        context = Context(
            spark, "app", spark, 1, "last" if native else "all", given={}, wants_old=wants_old(plan), native=native,
            dead_letters="dead" if letters else None,
        )  # fmt: skip
        made = execution.Execution(plan, context)
        monkeypatch.setattr(execution, "reduce", lambda call, frames: nothing)
        made.stream()
        made.frames()

    def _paths_from(self, flow: Flow, origin: Node, context: Context) -> None:
        for each in flow.readers(origin):
            if isinstance(each, Node) and each not in self.found:
                self.found.add(each)
                self._paths_from(flow, each, context)
            elif isinstance(each, End) and isinstance(each.node, SINKS):
                self.found.add(each.node)


def _given(given: Any) -> Callable[..., Any]:
    return lambda *_: given


@pytest.mark.parametrize("letters", [False, True])
@pytest.mark.parametrize("say", SAID)
def test_what_is_said_is_done(
    say: Callable[[App], None], letters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App("app")
    say(app)
    plan = app.plan()
    computing = Computing(plan, has_dead_letters=letters)
    watched = Watched(plan, monkeypatch, letters=letters, native=False)
    assert {each.name for each in computing._because} == {each.name for each in watched.found}


def test_what_is_said_beside_sparks_own_aggregation_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("app")
    counted(app)
    plan = app.plan()
    watched = Watched(plan, monkeypatch, letters=False, native=True)
    assert {each.name for each in Computing(plan, native=True)._because} == {
        each.name for each in watched.found
    }
    assert watched.found
