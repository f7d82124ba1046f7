"""The reference and the operators of the lowering, at random: two ways of writing down one meaning give the same.

The operators are run as classes, without Spark, in micro-batches that are cut anywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams import App, Hopping, JoinWindow, Session, Sliding, TimeLimit, Tumbling, WindowClose
from ottla.streams.lowering.stateful.aggregate import Aggregate
from ottla.streams.lowering.stateful.distinct import Distinct
from ottla.streams.lowering.stateful.fold import fold_of
from ottla.streams.lowering.stateful.joining import joiner
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.stream_join import StreamJoin
from ottla.streams.lowering.stateful.stream_table_join import StreamTableJoin
from ottla.streams.lowering.stateful.suppress import Suppress, patience_of
from ottla.streams.lowering.stateful.table import Table
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
            joined if isinstance(window, Session) else None,
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
        counted = left.group_by_key().windowed_by(Tumbling(10, grace=7)).reduce(joined)
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
            Tumbling(10, grace=5),
            Hopping(10, 4),
            Hopping(9, 3, grace=20),
            Session(5, grace=8),
            Session(3),
            Sliding(10, grace=100),
            Sliding(5, grace=12),
            Sliding(0),
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
@settings(max_examples=60, deadline=None)
@given(records=events, cuts=cuts_of)
def test_the_reference_gives_what_an_operator_gives(
    kind: tuple[Any, ...], records: list[Given], cuts: list[int]
) -> None:
    node, make = build(*kind)
    only_left = [(key, value, time, 0) for key, value, time, _ in records]
    taken = records if len(node.inputs) > 1 else only_left
    assert by_reference(node, taken) == by_operator(node, make, taken, cuts)
