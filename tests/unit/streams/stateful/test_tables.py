"""Tables, aggregates without windows, what is held back, what is let through once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.errors import StreamsError
from ottla.streams.lowering.stateful.aggregate import Aggregate
from ottla.streams.lowering.stateful.distinct import Distinct
from ottla.streams.lowering.stateful.fold import Fold
from ottla.streams.lowering.stateful.latest import latest
from ottla.streams.lowering.stateful.record import Output
from ottla.streams.lowering.stateful.suppress import Patience, Suppress
from ottla.streams.lowering.stateful.table import Table
from ottla.streams.lowering.stateful.table_aggregate import Balance, TableAggregate
from tests.unit.streams.stateful.driver import Driver, changes, record, run, table_of, windowed

CONCAT = Fold("reduce", adders=(lambda aggregate, value: aggregate + value,))
cuts_given = st.lists(st.integers(1, 25), max_size=5)


def test_a_table_has_the_last_value_of_each_key_and_says_what_was_before() -> None:
    given = [
        record("a", "1", 5),
        record("b", "2", 6),
        record("a", "3", 4),
        record("a", None, 7),
        record("c", None, 8),
        record(None, "4", 9),
        record("a", "5", 10),
    ]
    assert changes(Table, given, [2]) == [
        ("a", "1", None, 5),
        ("b", "2", None, 6),
        ("a", "3", "1", 4),
        ("a", None, "3", 7),
        ("c", None, None, 8),
        ("a", "5", None, 10),
    ]


def test_a_count_as_in_the_guide() -> None:
    """Kafka Streams' developer guide, stream aggregations: records without key or value are ignored."""
    given = [
        record("hello", "1", 1),
        record("kafka", "1", 2),
        record("streams", "1", 3),
        record("kafka", "1", 4),
        record(None, "1", 5),
        record("kafka", None, 5),
        record("kafka", "1", 5),
        record("streams", "1", 6),
    ]
    assert run(lambda: Aggregate(Fold("count")), given, [4]) == [
        ("hello", 1, 1),
        ("kafka", 1, 2),
        ("streams", 1, 3),
        ("kafka", 2, 4),
        ("kafka", 3, 5),
        ("streams", 2, 6),
    ]


def test_a_reduce_begins_with_the_first_value_and_has_the_latest_time() -> None:
    made = changes(
        lambda: Aggregate(CONCAT), [record("a", "x", 9), record("a", "y", 3), record("b", "z", 1)], [1]
    )
    assert made == [("a", "x", None, 9), ("a", "xy", "x", 9), ("b", "z", None, 1)]


def test_an_adder_may_delete() -> None:
    total = Fold("aggregate", initializer=int, adders=(lambda key, value, total: (total + value) or None,))
    made = changes(
        lambda: Aggregate(total), [record("a", 3, 1), record("a", -3, 2), record("a", 4, 3)], [1, 2]
    )
    assert made == [("a", 3, None, 1), ("a", None, 3, 2), ("a", 4, None, 3)]


def test_an_aggregate_is_begun_afresh_for_every_key() -> None:
    def add(key: str, value: str, names: list[str]) -> list[str]:
        names.append(value)
        return names

    names = Fold("aggregate", initializer=list, adders=(add,), load=list, dump=tuple)
    made = changes(
        lambda: Aggregate(names), [record("a", "x", 1), record("b", "y", 2), record("a", "z", 3)], [1]
    )
    assert made == [("a", ("x",), None, 1), ("b", ("y",), None, 2), ("a", ("x", "z"), ("x",), 3)]


def test_a_cogroup_adds_each_stream_its_way() -> None:
    fold = Fold(
        "aggregate",
        initializer=int,
        adders=(lambda key, value, total: total + value, lambda key, value, total: total - len(value)),
        load_values=(int, str),
    )
    given = [record("a", "5", 1, 0), record("a", "xx", 2, 1), record("a", "1", 3, 0)]
    assert run(lambda: Aggregate(fold), given, [1]) == [("a", 5, 1), ("a", 3, 2), ("a", 4, 3)]


def moved(key: str, added: Any, removed: Any, time: int) -> Any:
    return record(key, (added, removed), time)


def test_a_table_aggregate_as_in_the_guide() -> None:
    """Kafka Streams' developer guide, table aggregations: users by region, the lengths of their names."""
    total = Balance(
        "aggregate",
        initializer=int,
        adder=lambda key, value, so_far: so_far + value,
        subtractor=lambda key, value, so_far: so_far - value,
    )
    given = [
        moved("E", 5, None, 1),
        moved("A", 3, None, 2),
        moved("A", 7, None, 3),
        moved("E", None, 5, 4),
        moved("A", 5, None, 4),
        moved("A", None, 7, 5),
        moved("A", None, 3, 7),
        moved("E", 3, None, 7),
    ]
    assert run(lambda: TableAggregate(total), given, [3]) == [
        ("E", 5, 1),
        ("A", 3, 2),
        ("A", 10, 3),
        ("E", 0, 4),
        ("A", 15, 4),
        ("A", 8, 5),
        ("A", 5, 7),
        ("E", 3, 7),
    ]


def test_a_row_that_stays_in_its_group_changes_it_once() -> None:
    made = changes(lambda: TableAggregate(Balance("count")), [moved("a", 1, None, 1), moved("a", 2, 1, 2)])
    assert made == [("a", 1, None, 1), ("a", 1, 1, 2)]
    joined = Balance(
        "reduce", adder=lambda one, other: one + other, subtractor=lambda one, other: one.replace(other, "")
    )
    made = changes(lambda: TableAggregate(joined), [moved("a", "x", None, 1), moved("a", "y", "x", 2)])
    assert made == [("a", "x", None, 1), ("a", "y", "x", 2)]


def test_what_leaves_an_empty_group_is_passed_over() -> None:
    assert changes(lambda: TableAggregate(Balance("count")), [moved("a", None, 1, 1)]) == []


def test_one_change_a_key_is_the_last_from_before_the_first() -> None:
    out = [
        Output("a", 1, None, 1),
        Output("b", 1, None, 2),
        Output("a", 2, 1, 3),
        Output("c", 1, None, 4),
        Output("c", None, 1, 5),
        Output("d", None, 7, 6),
    ]
    assert latest(out, str.encode) == [
        Output("b", 1, None, 2),
        Output("a", 2, None, 3),
        Output("d", None, 7, 6),
    ]


# Held back


def final(wait: int = 0) -> Any:
    return lambda: Suppress(Patience(wait, final=True))


def test_a_final_result_leaves_once_its_window_is_over() -> None:
    given = [
        windowed("a", 0, 10, 1, 2),
        windowed("a", 0, 10, 2, 5, old=1),
        windowed("b", 0, 10, 1, 9),
        windowed("a", 10, 20, 1, 12),
        windowed("b", 10, 20, 1, 13),
    ]
    assert changes(final(3), given, [1, 3]) == [(("a", 0, 10), 2, None, 5), (("b", 0, 10), 1, None, 9)]


def test_a_result_that_was_deleted_before_it_left_is_never_heard_of() -> None:
    given = [windowed("a", 0, 4, 1, 4), windowed("a", 0, 4, None, 4, old=1), windowed("b", 20, 20, 1, 20)]
    assert run(final(), given[:2] + given[2:]) == [(("a", 0, 4), 1, 4), (("b", 20, 20), 1, 20)]
    # Its window was over, and so the first one left at once; held a little longer, both cancel out.
    assert run(final(5), given) == []


def waiting(wait: int, most: int | None = None, *, fails: bool = False) -> Any:
    return lambda: Suppress(Patience(wait, False, most, fails), "held")


def test_a_time_limit_counts_from_the_first_change_and_lets_the_last_go() -> None:
    given = [
        record("a", 1, 0),
        record("a", 2, 5, old=1),
        record("b", 1, 9),
        record("a", None, 9, old=2),
        record("b", 2, 10, old=1),
        record("b", 3, 19, old=2),
    ]
    assert changes(waiting(10), given, [2, 4]) == [("a", None, None, 9), ("b", 3, None, 19)]


def test_the_oldest_goes_early_when_there_is_no_room() -> None:
    given = [record("a", 1, 3), record("b", 1, 1), record("c", 1, 4), record("d", 1, 4)]
    assert run(waiting(1000, 2), given, [2]) == [("b", 1, 1), ("a", 1, 3)]


def test_no_room_may_be_a_failure() -> None:
    with pytest.raises(StreamsError, match=r"held: more than 1 keys are held back\nhint: "):
        run(waiting(1000, 1, fails=True), [record("a", 1, 3), record("b", 1, 4)])


held = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.booleans()), max_size=25)


@settings(max_examples=60, deadline=None)
@given(given=held, cuts=cuts_given, wait=st.integers(0, 20), most=st.sampled_from([None, 1, 2]))
def test_where_batches_end_changes_nothing_for_what_is_held(
    given: list[Any], cuts: list[int], wait: int, most: int | None
) -> None:
    table: dict[str, Any] = {}
    records = []
    for n, (key, time, gone) in enumerate(given):
        value = None if gone else n
        records.append(record(key, value, time, old=table.get(key)))
        table[key] = value
    records.append(record("z", 0, 10_000))
    made = changes(waiting(wait, most), records, cuts)
    assert made == changes(waiting(wait, most), records)
    left = {key: value for key, value in table.items() if value is not None}
    assert {key: value for key, value in table_of(made).items() if key != "z"} == left


# Once


def test_the_first_record_of_a_key_passes() -> None:
    given = [record("a", 1, 5), record("b", 2, 3), record("a", 3, 9), record(None, 4, 9), record("b", 5, 900)]
    assert run(Distinct, given, [1, 3]) == [("a", 1, 5), ("b", 2, 3)]


def test_within_a_span_only_one_passes() -> None:
    given = [
        record("a", 1, 100),
        record("a", 2, 110),
        record("a", 3, 89),
        record("a", 4, 111),
        record("a", 5, 121),
    ]
    assert [value for _, value, _ in run(lambda: Distinct(10), given, [2])] == [1, 3, 4]


@settings(max_examples=60, deadline=None)
@given(given=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 90)), max_size=25), cuts=cuts_given)
def test_where_batches_end_changes_nothing_for_distinct(given: list[Any], cuts: list[int]) -> None:
    records = [record(key, n, time) for n, (key, time) in enumerate(given)]
    assert run(lambda: Distinct(7), records, cuts) == run(lambda: Distinct(7), records)


def test_keys_that_may_pass_again_are_forgotten() -> None:
    driver = Driver(lambda: Distinct(10))
    for n in range(200):
        driver.batch([record(f"k{n}", 1, n * 10)])
    assert driver.entries() < 12
