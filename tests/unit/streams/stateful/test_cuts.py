"""Law P2 for every operator: what flows out does not depend on where micro-batches begin and end.

Records come in any order of time, with null keys and values, and adders delete. What is said of a change is compared
too: what was there before it, and when.
"""

from collections.abc import Callable
from operator import eq
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.lowering.stateful.aggregate import Aggregate
from ottla.streams.lowering.stateful.distinct import Distinct
from ottla.streams.lowering.stateful.fold import Fold
from ottla.streams.lowering.stateful.foreign_key_join import Resolving, Responding, Subscribing
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.session_window import SessionWindows
from ottla.streams.lowering.stateful.sliding_window import SlidingWindows
from ottla.streams.lowering.stateful.stream_join import StreamJoin
from ottla.streams.lowering.stateful.stream_table_join import StreamTableJoin
from ottla.streams.lowering.stateful.suppress import Patience, Suppress
from ottla.streams.lowering.stateful.table import Table
from ottla.streams.lowering.stateful.table_aggregate import Balance, TableAggregate
from ottla.streams.lowering.stateful.table_join import TableJoin
from ottla.streams.lowering.stateful.time_window import TimeWindows
from ottla.streams.types.build import type_of
from tests.unit.streams.stateful.driver import TEXT, WINDOWED, changes, record

Row = tuple[str | None, int | None, int, int]


def total(key: Any, value: int, aggregate: int) -> int | None:
    """A sum that deletes itself when it gets too large."""
    return None if aggregate + value > 6 else aggregate + value


SUM = Fold("aggregate", lambda: 0, (total,), lambda key, one, other: (one or 0) + (other or 0))
BOTH = Fold(
    "aggregate",
    lambda: 0,
    (total, lambda key, value, aggregate: aggregate - value),
    load_values=(int, int),
)
REDUCE = Fold("reduce", None, (lambda one, other: None if one == other else one + other,))


def pair(key: Any, left: Any, right: Any) -> Any:
    return (left, right)


def plain(row: Row) -> Record:
    key, value, time, side = row
    return record(key, value, time, side)


def windowed(row: Row) -> Record:
    key, value, time, _ = row
    at = (key or "z", time // 10 * 10, time // 10 * 10 + 10)
    return Record(0, at, WINDOWED.encode(at), value, time)


def moved(row: Row) -> Record:
    """A change of a regrouped table: what is added, what is removed."""
    key, value, time, side = row
    return record(key, None if value is None else (value if side else None, 1 if value % 2 else None), time)


def subscription(row: Row) -> Record:
    key, value, time, side = row
    if side:
        return record(key, value, time, 1)
    return record(key, (f"l{value}", value, time, (value or 0) % 4), time)


def response(row: Row) -> Record:
    key, value, time, side = row
    return record(key or "z", (time % 5, value, side or None, time), time)


Case = tuple[Callable[[], Operator], Callable[[Row], Record]]

CASES: dict[str, Case] = {
    "table": (Table, plain),
    "count": (lambda: Aggregate(Fold("count")), plain),
    "reduce": (lambda: Aggregate(REDUCE), plain),
    "aggregate": (lambda: Aggregate(SUM), plain),
    "cogroup": (lambda: Aggregate(BOTH), plain),
    "distinct": (Distinct, plain),
    "distinct within": (lambda: Distinct(6), plain),
    "stream-table join": (lambda: StreamTableJoin("left", pair), plain),
    "table join": (lambda: TableJoin("inner", pair), plain),
    "table left join": (lambda: TableJoin("left", pair), plain),
    "table outer join": (lambda: TableJoin("outer", pair), plain),
    "table count": (lambda: TableAggregate(Balance("count")), moved),
    "table sum": (
        lambda: TableAggregate(Balance("aggregate", lambda: 0, total, lambda key, value, old: old - value)),
        moved,
    ),
    "subscribing": (lambda: Subscribing("left", lambda key, value: f"r{value % 2}", eq), plain),
    "subscribing inner": (lambda: Subscribing("inner", lambda key, value: f"r{value % 2}", eq), plain),
    "responding": (lambda: Responding(key_code(type_of(str)).encode), subscription),
    "suppress": (lambda: Suppress(Patience(9)), plain),
    "suppress two": (lambda: Suppress(Patience(9, records_max=2)), plain),
    "suppress final": (lambda: Suppress(Patience(4, final=True)), windowed),
}  # fmt: skip
for grace in (0, 7):
    for closing in (False, True):
        for name, fold in (("sum", SUM), ("count", Fold("count"))):
            kind = f"{name} {grace} {'final' if closing else 'updates'}"
            CASES[f"tumbling {kind}"] = (
                lambda f=fold, g=grace, c=closing: TimeWindows(f, TEXT, 10, 10, g, closing=c),
                plain,
            )
            CASES[f"hopping {kind}"] = (
                lambda f=fold, g=grace, c=closing: TimeWindows(f, TEXT, 10, 3, g, closing=c),
                plain,
            )
            CASES[f"sliding {kind}"] = (
                lambda f=fold, g=grace, c=closing: SlidingWindows(f, TEXT, 5, g, closing=c),
                plain,
            )
            CASES[f"session {kind}"] = (
                lambda f=fold, g=grace, c=closing: SessionWindows(f, TEXT, 4, g, closing=c),
                plain,
            )
    for how in ("inner", "left", "outer"):
        for before, after in ((5, 5), (0, 9), (-3, 8)):
            CASES[f"join {how} {before} {after} {grace}"] = (
                lambda h=how, b=before, a=after, g=grace: StreamJoin(h, pair, TEXT, b, a, g),
                plain,
            )

rows_given = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "b", "c", None]),
        st.sampled_from([0, 1, 1, 2, 3, None]),
        st.integers(0, 60),
        st.integers(0, 1),
    ),
    max_size=16,
)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=20, deadline=None)
@given(rows=rows_given, cuts=st.lists(st.integers(1, 15), min_size=1, max_size=6), is_sorted=st.booleans())
def test_where_micro_batches_end_changes_nothing(
    case: str, rows: list[Row], cuts: list[int], is_sorted: bool
) -> None:
    make, shaped = CASES[case]
    records = [shaped(row) for row in (sorted(rows, key=lambda row: row[2]) if is_sorted else rows)]
    assert changes(make, records, cuts) == changes(make, records)


@settings(max_examples=20, deadline=None)
@given(rows=rows_given, cuts=st.lists(st.integers(1, 15), max_size=6))
def test_responses_are_resolved_alike_where_versions_grow(rows: list[Row], cuts: list[int]) -> None:
    # Within a micro-batch an answer may be older than the last; between them Kafka Streams' order is kept.
    grown = [(key, value, n, side) for n, (key, value, _, side) in enumerate(rows)]
    records = [
        record(key or "z", (n, value, side or None, n), n) for n, (key, value, _, side) in enumerate(grown)
    ]
    assert changes(lambda: Resolving("left", pair), records, cuts) == changes(
        lambda: Resolving("left", pair), records
    )
