"""Joins: the tables of Kafka Streams' developer guide, then at random against small models."""

from collections.abc import Sequence
from operator import eq
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.lowering.stateful.foreign_key_join import Resolving, Responding, Subscribing
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.lowering.stateful.stream_join import StreamJoin
from ottla.streams.lowering.stateful.stream_table_join import StreamTableJoin
from ottla.streams.lowering.stateful.table_join import TableJoin
from tests.unit.streams.stateful.driver import TEXT, Driver, changes, parts, record, run, table_of

LEFT = {1: None, 3: "A", 5: "B", 7: None, 9: "C", 12: None, 15: "D"}
RIGHT = {2: None, 4: "a", 6: "b", 8: None, 10: "c", 11: None, 13: None, 14: "d"}
SEQUENCE = sorted(
    [record("k", value, time, 0) for time, value in LEFT.items()]
    + [record("k", value, time, 1) for time, value in RIGHT.items()],
    key=lambda each: each.timestamp,
)


def pair(key: Any, left: Any, right: Any) -> tuple[Any, Any]:
    return (left, right)


def streams(how: str, before: int = 15, after: int = 15, grace: int = 5) -> Any:
    return lambda: StreamJoin(how, pair, TEXT, before, after, grace)


def by_time(made: Sequence[tuple[Any, Any, int]]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for _, value, time in made:
        found.setdefault(time, []).append(value)
    return found


# Streams with streams

INNER = {
    4: [("A", "a")],
    5: [("B", "a")],
    6: [("A", "b"), ("B", "b")],
    9: [("C", "a"), ("C", "b")],
    10: [("A", "c"), ("B", "c"), ("C", "c")],
    14: [("A", "d"), ("B", "d"), ("C", "d")],
    15: [("D", "a"), ("D", "b"), ("D", "c"), ("D", "d")],
}
# The table says 60, 80 and 100, where the windows with their grace are not over by a millisecond.
LATER = [record("k", "E", 40, 0), record("k", "F", 61, 0), record("k", "f", 82, 1), record("k", "G", 103, 0)]


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [("E", None), ("F", None)]),
        ("outer", [("E", None), ("F", None), (None, "f")]),
    ],
)
def test_two_streams_as_in_the_table_of_the_guide(how: str, alone: list[Any]) -> None:
    made = run(streams(how), [*SEQUENCE, *LATER])
    pairs = [each for each in made if each[2] <= 15]
    assert by_time(pairs) == INNER
    assert [value for _, value, time in made if time > 15] == alone


def test_ends_of_a_join_window_belong_to_it_and_may_differ() -> None:
    given = [record("k", "l", 100, 0)] + [record("k", t, t, 1) for t in (89, 90, 105, 106)]
    made = run(streams("inner", before=10, after=5), given)
    assert [value for _, value, _ in made] == [("l", 90), ("l", 105)]


def test_the_time_of_a_pair_is_the_later_one() -> None:
    assert run(streams("inner"), [record("k", "r", 9, 1), record("k", "l", 5, 0)]) == [("k", ("l", "r"), 9)]


def test_a_record_alone_waits_for_window_and_grace_and_leaves_by_any_key() -> None:
    given = [
        record("k", "l", 10, 0),
        record("x", "l", 30, 0),
        record("y", "r", 31, 1),
        record("k", "r", 25, 1),
    ]
    made = run(streams("left"), given)
    # Over when stream time is beyond 10 + 15 + 5; the right record that would have met it comes too late to save it.
    assert made == [("k", ("l", None), 10), ("k", ("l", "r"), 25)]


def test_the_last_moment_of_the_grace_is_in_it() -> None:
    # 10 + 15 + 5 is 30: until then the record may still meet somebody, and from 31 on it is alone.
    assert run(streams("left"), [record("k", "l", 10, 0), record("x", "l", 30, 0)]) == []
    assert run(streams("left"), [record("k", "l", 10, 0), record("x", "l", 31, 0)]) == [
        ("k", ("l", None), 10)
    ]


def test_a_record_whose_window_is_over_when_it_comes_leaves_at_once() -> None:
    made = run(streams("left"), [record("x", "l", 100, 0), record("k", "l", 50, 0)])
    assert made == [("k", ("l", None), 50)]


def test_records_without_a_key_are_alone() -> None:
    given = [record(None, "l", 1, 0), record(None, "r", 2, 1), record(None, None, 3, 0)]
    assert run(streams("inner"), given) == []
    assert run(streams("left"), given) == [(None, ("l", None), 1)]
    assert run(streams("outer"), given) == [(None, ("l", None), 1), (None, (None, "r"), 2)]


joinable = st.lists(
    st.tuples(st.sampled_from("kx"), st.integers(0, 99), st.integers(0, 80), st.integers(0, 1)), max_size=25
)
cuts_given = st.lists(st.integers(1, 25), max_size=5)


def records_of(given: list[tuple[str, int, int, int]]) -> list[Record]:
    return [record(*each) for each in given]


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@settings(max_examples=60, deadline=None)
@given(
    given=joinable,
    cuts=cuts_given,
    spans=st.tuples(st.integers(-3, 12), st.integers(3, 12), st.integers(0, 9)),
)
def test_where_batches_end_changes_nothing_for_streams(
    how: str, given: list[Any], cuts: list[int], spans: tuple[int, int, int]
) -> None:
    records = records_of(given)
    assert run(streams(how, *spans), records, cuts) == run(streams(how, *spans), records)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@settings(max_examples=60, deadline=None)
@given(given=joinable, cuts=cuts_given)
def test_with_grace_for_all_every_near_pair_meets_once(how: str, given: list[Any], cuts: list[int]) -> None:
    numbered = [(key, n, time, side) for n, (key, _, time, side) in enumerate(given)]
    made = run(streams(how, 10, 5, 1000), [*records_of(numbered), record("z", "end", 10_000, 0)], cuts)
    expected = {
        (left[1], right[1])
        for left in numbered
        for right in numbered
        if left[3] == 0 and right[3] == 1 and left[0] == right[0] and -10 <= right[2] - left[2] <= 5
    }
    met = {n for both in expected for n in both}
    if how != "inner":
        expected |= {(n, None) for _, n, _, side in numbered if side == 0 and n not in met}
    if how == "outer":
        expected |= {(None, n) for _, n, _, side in numbered if side == 1 and n not in met}
    assert sorted(value for _, value, _ in made if None not in value) == sorted(
        each for each in expected if None not in each
    )
    assert {value for _, value, _ in made} == expected
    assert len(made) == len(expected)


def test_streams_are_not_remembered_for_ever() -> None:
    driver = Driver(streams("outer"))
    most = 0
    for n in range(300):
        driver.batch([record(f"k{n}", "l", n * 10, n % 2), record("k", "r", n * 10, (n + 1) % 2)])
        most = max(most, sum(driver.entries(store) for store in driver.backings))
    assert most < 80


# Streams with tables


def test_a_stream_with_a_table_as_in_the_table_of_the_guide() -> None:
    assert by_time(run(lambda: StreamTableJoin("inner", pair), SEQUENCE)) == {
        5: [("B", "a")],
        15: [("D", "d")],
    }
    assert by_time(run(lambda: StreamTableJoin("left", pair), SEQUENCE, [3, 4, 9])) == {
        3: [("A", None)],
        5: [("B", "a")],
        9: [("C", None)],
        15: [("D", "d")],
    }


def test_a_stream_record_without_a_key_meets_nobody() -> None:
    given = [record(None, "r", 1, 1), record(None, "l", 2, 0)]
    assert run(lambda: StreamTableJoin("inner", pair), given) == []
    assert run(lambda: StreamTableJoin("left", pair), given) == [(None, ("l", None), 2)]


# Tables with tables

TABLES = {
    "inner": {4: ("A", "a"), 5: ("B", "a"), 6: ("B", "b"), 7: None, 10: ("C", "c"), 11: None, 15: ("D", "d")},
    "left": {
        3: ("A", None),
        4: ("A", "a"),
        5: ("B", "a"),
        6: ("B", "b"),
        7: None,
        9: ("C", None),
        10: ("C", "c"),
        11: ("C", None),
        12: None,
        15: ("D", "d"),
    },
    "outer": {
        3: ("A", None),
        4: ("A", "a"),
        5: ("B", "a"),
        6: ("B", "b"),
        7: (None, "b"),
        8: None,
        9: ("C", None),
        10: ("C", "c"),
        11: ("C", None),
        12: None,
        14: (None, "d"),
        15: ("D", "d"),
    },
}


@pytest.mark.parametrize("how", TABLES)
def test_two_tables_as_in_the_table_of_the_guide(how: str) -> None:
    made = changes(lambda: TableJoin(how, pair), SEQUENCE, [2, 5, 8])
    table_of(made)
    assert {time: value for _, value, _, time in made} == TABLES[how]


def test_the_time_of_a_joined_row_is_the_later_one() -> None:
    made = run(lambda: TableJoin("inner", pair), [record("k", "l", 9, 0), record("k", "r", 5, 1)])
    assert made == [("k", ("l", "r"), 9)]


table_changes = st.lists(
    st.tuples(st.sampled_from("kx"), st.sampled_from(["a", "b", None]), st.integers(0, 1)), max_size=30
)


@pytest.mark.parametrize("how", TABLES)
@settings(max_examples=60, deadline=None)
@given(given=table_changes, cuts=cuts_given)
def test_a_joined_table_is_the_join_of_the_tables(how: str, given: list[Any], cuts: list[int]) -> None:
    records = [record(key, value, n, side) for n, (key, value, side) in enumerate(given)]
    made = table_of(changes(lambda: TableJoin(how, pair), records, cuts))
    left, right = ({key: value for key, value, side in given if side == n} for n in (0, 1))
    expected = {}
    for key in "kx":
        one, other = left.get(key), right.get(key)
        wanted = {"inner": one and other, "left": one, "outer": one or other}[how]
        if wanted:
            expected[key] = (one, other)
    assert made == expected


# By a foreign key


class ForeignKeys:
    """The three operators one after another, each with its stores."""

    def __init__(self, how: str) -> None:
        self.subscribing = Driver(lambda: Subscribing(how, lambda key, value: value[0], eq))
        self.responding = Driver(lambda: Responding(TEXT.encode))
        self.resolving = Driver(lambda: Resolving(how, pair))

    def batch(self, records: Sequence[Record]) -> list[tuple[Any, Any, Any, int]]:
        """Sides: 0 is left, 1 is right."""
        lefts = [each for each in records if each.side == 0]
        asked = [
            Record(0, out.key, None if out.key is None else out.key.encode(), out.value, out.timestamp)
            for out in self.subscribing.batch(lefts)
        ]
        rights = [each for each in records if each.side == 1]
        both = sorted([*asked, *rights], key=lambda each: each.timestamp)
        answered = [
            Record(0, out.key, out.key.encode(), out.value, out.timestamp)
            for out in self.responding.batch(both)
        ]
        return [(out.key, out.value, out.old, out.timestamp) for out in self.resolving.batch(answered)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            "inner",
            [
                ("k", (("1",), "foo")),
                ("k", None),
                ("k", None),
                ("k", (("3",), "bar")),
                ("k", None),
                ("k", (("1",), "foo")),
                ("q", (("10",), "baz")),
                ("r", (("10",), "baz")),
            ],
        ),
        (
            "left",
            [
                ("k", (("1",), "foo")),
                ("k", (("2",), None)),
                ("k", (("3",), None)),
                ("k", (("3",), "bar")),
                ("k", None),
                ("k", (("1",), "foo")),
                ("q", (("10",), None)),
                ("r", (("10",), None)),
                ("q", (("10",), "baz")),
                ("r", (("10",), "baz")),
            ],
        ),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_foreign_key_join_as_in_the_table_of_the_guide(how: str, expected: Any, together: bool) -> None:
    given = [
        record("1", "foo", 0, 1),
        record("k", ("1",), 1),
        record("k", ("2",), 2),
        record("k", ("3",), 3),
        record("3", "bar", 4, 1),
        record("k", None, 5),
        record("k", ("1",), 6),
        record("q", ("10",), 7),
        record("r", ("10",), 8),
        record("10", "baz", 9, 1),
    ]
    join = ForeignKeys(how)
    batches = [given] if together else [[each] for each in given]
    made = [each for batch in batches for each in join.batch(batch)]
    assert [(key, value) for key, value, _, _ in made] == expected


def test_a_row_that_refers_to_nothing() -> None:
    inner, left = ForeignKeys("inner"), ForeignKeys("left")
    given = [
        record("k", ("1",), 1),
        record("1", "foo", 2, 1),
        record("k", (None,), 3),
        record("1", "bar", 4, 1),
    ]
    assert [each[1] for each in inner.batch(given)] == [(("1",), "foo"), None]
    assert [each[1] for each in left.batch(given)] == [(("1",), None), (("1",), "foo"), ((None,), None)]


def test_a_row_that_goes_on_referring_to_nobody_says_nothing() -> None:
    assert ForeignKeys("inner").batch([record("k", ("1",), 1), record("k", ("1",), 2)]) == []


def test_an_answer_to_a_version_that_is_no_more_is_dropped() -> None:
    given = [
        record("k", (2, ("2",), "two", 5), 5),
        record("k", (1, ("1",), "one", 4), 4),  # from another right key, and late
        record("k", (2, ("2",), "zwei", 6), 6),
    ]
    made = changes(lambda: Resolving("inner", pair), given)
    assert made == [
        ("k", (("2",), "two"), None, 5),
        ("k", (("2",), "zwei"), (("2",), "two"), 6),
    ]
    gone = [record("k", (3, None, None, 7), 7), record("k", (2, ("2",), "drei", 7), 7)]
    assert changes(lambda: Resolving("inner", pair), [*given, *gone])[2:] == [
        ("k", None, (("2",), "zwei"), 7)
    ]


foreign_changes = st.lists(
    st.one_of(
        st.tuples(st.just(0), st.sampled_from("kqr"), st.sampled_from([("1",), ("2",), (None,), None])),
        st.tuples(st.just(1), st.sampled_from("12"), st.sampled_from(["x", "y", None])),
    ),
    max_size=25,
)


@pytest.mark.parametrize("how", ["inner", "left"])
@settings(max_examples=60, deadline=None)
@given(given=foreign_changes, cuts=cuts_given)
def test_a_foreign_key_join_is_the_join_of_the_tables(how: str, given: list[Any], cuts: list[int]) -> None:
    records = [record(key, value, n, side) for n, (side, key, value) in enumerate(given)]
    join = ForeignKeys(how)
    made = table_of([each for part in parts(records, cuts) for each in join.batch(part)])
    left = {key: value for side, key, value in given if side == 0}
    right = {key: value for side, key, value in given if side == 1}
    expected = {}
    for key, value in left.items():
        if value is not None and (how == "left" or right.get(value[0]) is not None):
            expected[key] = (value, right.get(value[0]))
    assert made == expected
    leftovers = sum(each.entries(s) for each in (join.responding, join.resolving) for s in each.backings)
    assert leftovers <= 20


def test_a_row_with_many_subscribers() -> None:
    join = ForeignKeys("inner")
    join.batch([record("1", "a", 0, 1)])
    for start in range(0, 1000, 100):
        assert len(join.batch([record(f"k{n}", ("1",), 1) for n in range(start, start + 100)])) == 100
    assert len(join.batch([record("1", "b", 2, 1)])) == 1000
    assert len(join.batch([record(f"k{n}", None, 3) for n in range(990)])) == 990
    assert sorted(each[0] for each in join.batch([record("1", "c", 4, 1)])) == sorted(
        f"k{n}" for n in range(990, 1000)
    )
