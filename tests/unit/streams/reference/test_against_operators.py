"""The reference and the operators of the lowering, at random: two ways of writing down one meaning give the same.

The operators are run as classes, without Spark, in micro-batches that are cut anywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams import (
    App,
    HoppingWindow,
    JoinWindow,
    SessionWindow,
    SlidingWindow,
    TimeLimit,
    TumblingWindow,
    WindowClose,
)
from ottla.streams.lowering.stateful.aggregate import Aggregate
from ottla.streams.lowering.stateful.distinct import Distinct
from ottla.streams.lowering.stateful.fold import fold_of
from ottla.streams.lowering.stateful.foreign_key_join import Resolving, Responding, Subscribing
from ottla.streams.lowering.stateful.joining import joiner
from ottla.streams.lowering.stateful.keycode import key_code, same_key
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.stream_join import StreamJoin
from ottla.streams.lowering.stateful.stream_table_join import StreamTableJoin
from ottla.streams.lowering.stateful.suppress import Suppress, patience_of
from ottla.streams.lowering.stateful.table import Table
from ottla.streams.lowering.stateful.table_aggregate import Balance, TableAggregate
from ottla.streams.lowering.stateful.table_join import TableJoin
from ottla.streams.lowering.stateful.windowed import windows
from ottla.streams.reference.change import Change
from ottla.streams.reference.operators import operator_of
from tests.unit.streams.stateful.driver import Driver, parts

# What comes in: key, value, time, input.
Given = tuple[str | None, str | None, int, int]
Flown = list[tuple[Any, Any, Any, int]]

events = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "b", None]),
        st.sampled_from(["p", "q", "r", "s", None]),
        st.integers(0, 60),
        st.integers(0, 1),
    ),
    max_size=30,
)
# Rows of the left refer by their values to keys of the right.
references = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["k", "l", None]),
            st.sampled_from(["p", "q", "s", None]),
            st.integers(0, 60),
            st.just(0),
        ),
        st.tuples(
            st.sampled_from(["p", "q", None]),
            st.sampled_from(["x", "y", None]),
            st.integers(0, 60),
            st.just(1),
        ),
    ),
    max_size=25,
)
cuts_of = st.lists(st.integers(1, 30), max_size=4)


def by_reference(node: Any, records: Sequence[Given]) -> Flown:
    operator = operator_of(node, {})
    made: Flown = []
    for key, value, time, side in records:
        change = Change(_key(node, key, time), value, time)
        made += [(each.key, each.value, each.old, each.timestamp) for each in operator.take(side, change)]
    return made


def by_operator(
    node: Any, make: Callable[[], Operator], records: Sequence[Given], cuts: Sequence[int]
) -> Flown:
    driver = Driver(make)
    code = key_code(node.inputs[0].key)
    taken = []
    for key, value, time, side in records:
        whole = _key(node, key, time)
        taken.append(Record(side, whole, None if whole is None else code.encode(whole), value, time))
    return [
        (each.key, each.value, each.old, each.timestamp)
        for part in parts(taken, cuts)
        for each in driver.batch(part)
    ]


def _key(node: Any, key: str | None, time: int) -> Any:
    """The key of a record, of a window where the keys that come in have one."""
    if key is None or "windowed" not in str(node.inputs[0].key):
        return key
    start = time // 10 * 10
    return (key, start, start + 10)


def joined(one: str, other: str) -> str:
    return f"{one}{other}"


def build(kind: str, window: Any = None, how: str = "inner") -> tuple[Any, Callable[[], Operator]]:
    """A node, and what makes its operator."""
    app = App("app")
    left, right = app.stream("left"), app.stream("right")
    node: Any
    if kind == "window":
        grouped = left.group_by_key().windowed_by(window, emit=how)
        node = grouped.aggregate(
            lambda: "",
            lambda value, so_far: None if value == "s" else so_far + value,
            joined if isinstance(window, SessionWindow) else None,
            value=str,
        )._node
        code = key_code(node.inputs[0].key)
        return node, lambda: windows(
            window, fold_of(node, node.inputs[0].key), code, closing=node.emit == "close"
        )
    if kind == "aggregate":
        node = left.group_by_key().reduce(lambda one, other: None if other == "s" else one + other)._node
        return node, lambda: Aggregate(fold_of(node, node.key))
    if kind == "streams":
        call = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[how]
        node = call(right, joined, within=window)._node
        return node, lambda: StreamJoin(
            how, _joiner(node), key_code(node.key), window.before_ms, window.after_ms, window.grace_ms
        )
    if kind == "stream-table":
        table = app.table("rows")
        node = (left.join(table, joined) if how == "inner" else left.left_join(table, joined))._node
        return node, lambda: StreamTableJoin(how, _joiner(node))
    if kind == "tables":
        one, other = app.table("one"), app.table("other")
        tables = {"inner": one.join, "left": one.left_join, "outer": one.outer_join}
        node = tables[how](other, joined)._node
        return node, lambda: TableJoin(how, _joiner(node))
    if kind == "suppress":
        counted = left.group_by_key().windowed_by(TumblingWindow(10, grace=7)).reduce(joined)
        node = counted.suppress(window)._node
        return node, lambda: Suppress(patience_of(node))
    if kind == "distinct":
        node = left.distinct(within=window)._node
        return node, lambda: Distinct(node.within_ms)
    assert kind == "table"
    node = left.to_table()._node
    return node, Table


def _joiner(node: Any) -> Any:
    return joiner(node, node.inputs[0].value, node.inputs[1].value)


KINDS: list[tuple[Any, ...]] = [
    ("table",),
    ("aggregate",),
    ("distinct",),
    ("distinct", 7),
    *(
        ("window", window, emit)
        for window in (
            TumblingWindow(10, grace=5),
            HoppingWindow(10, 4),
            HoppingWindow(9, 3, grace=20),
            SessionWindow(5, grace=8),
            SessionWindow(3),
            SlidingWindow(10, grace=100),
            SlidingWindow(5, grace=12),
            SlidingWindow(0),
        )
        for emit in ("update", "close")
    ),
    *(
        ("streams", window, how)
        for window in (JoinWindow(5, 5, grace=3), JoinWindow(2, 9), JoinWindow(-3, 8, grace=30))
        for how in ("inner", "left", "outer")
    ),
    *(("stream-table", None, how) for how in ("inner", "left")),
    *(("tables", None, how) for how in ("inner", "left", "outer")),
    ("suppress", WindowClose()),
    ("suppress", TimeLimit(9)),
    ("suppress", TimeLimit(20, records_max=2)),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(each) for each in kind))
@settings(max_examples=40, deadline=None)
@given(records=events, cuts=cuts_of)
def test_the_reference_gives_what_an_operator_gives(
    kind: tuple[Any, ...], records: list[Given], cuts: list[int]
) -> None:
    node, make = build(*kind)
    only_left = [(key, value, time, 0) for key, value, time, _ in records]
    taken = records if len(node.inputs) > 1 else only_left
    assert by_reference(node, taken) == by_operator(node, make, taken, cuts)


# A foreign-key join is three operators in the lowering, and one here.


def refer(value: str) -> str | None:
    """The key that a row refers to."""
    return None if value == "s" else value


def by_three_operators(node: Any, records: Sequence[Given]) -> Flown:
    asking = Driver(lambda: Subscribing(node.how, lambda key, value: refer(value), same_key(node.key)))
    answering = Driver(lambda: Responding(str.encode))
    resolving = Driver(lambda: Resolving(node.how, _joiner(node)))
    made: Flown = []
    for key, value, time, side in records:
        taken = [Record(side, key, None if key is None else key.encode(), value, time)]
        if side == 0:
            taken = [_as_record(each, 0) for each in asking.batch(taken)]
        for question in taken:
            for answer in answering.batch([question]):
                made += [
                    (each.key, each.value, each.old, each.timestamp)
                    for each in resolving.batch([_as_record(answer, 0)])
                ]
    return made


def _as_record(output: Any, side: int) -> Record:
    at = None if output.key is None else output.key.encode()
    return Record(side, output.key, at, output.value, output.timestamp)


@pytest.mark.parametrize("how", ["inner", "left"])
@settings(max_examples=40, deadline=None)
@given(records=references)
def test_a_join_by_foreign_key_gives_what_three_operators_give(how: str, records: list[Given]) -> None:
    app = App("app")
    left, right = app.table("left"), app.table("right")
    call = left.join if how == "inner" else left.left_join
    node = call(right, joined, on=refer)._node
    assert by_reference(node, records) == by_three_operators(node, records)


# An aggregate of a table gets what leaves a group and what joins it.


def rows_of(app: App, method: str) -> Any:
    """The node of an aggregate over the rows of a table, by their values."""
    grouped = app.table("rows").group_by(lambda key, value: (value, f"{key}{value}"), key=str, value=str)
    if method == "count":
        return grouped.count()._node
    if method == "reduce":
        return grouped.reduce(joined, lambda so_far, old: so_far.replace(old, "", 1) or None)._node  # type: ignore[arg-type]
    return grouped.aggregate(
        lambda: "+",
        lambda key, new, so_far: so_far + key + new,
        lambda old, so_far: so_far.replace(old, "", 1),
    )._node


@pytest.mark.parametrize("method", ["count", "reduce", "aggregate"])
@settings(max_examples=40, deadline=None)
@given(records=events, cuts=cuts_of)
def test_an_aggregate_of_a_table_gives_what_its_operator_gives(
    method: str, records: list[Given], cuts: list[int]
) -> None:
    node = rows_of(App("app"), method)
    regroup = node.input
    (source,) = regroup.inputs
    table, groups = operator_of(source, {}), operator_of(regroup, {})
    moves = [
        moved
        for key, value, time, _ in records
        for change in table.take(0, Change(key, value, time))
        for moved in groups.take(0, change)
    ]
    total = operator_of(node, {})
    expected = [
        (each.key, each.value, each.old, each.timestamp) for move in moves for each in total.take(0, move)
    ]
    offered = ("aggregate", "value") if method == "reduce" else ("key", "value", "aggregate")
    functions = [node.initializer, node.adder, node.subtractor]
    calls = [each and each.bound(() if n == 0 else offered) for n, each in enumerate(functions)]
    driver = Driver(lambda: TableAggregate(Balance(method, *calls)))
    taken = [Record(0, each.key, each.key.encode(), each.value, each.timestamp) for each in moves]
    made = [each for part in parts(taken, cuts) for each in driver.batch(part)]
    assert [(each.key, each.value, each.old, each.timestamp) for each in made] == expected
