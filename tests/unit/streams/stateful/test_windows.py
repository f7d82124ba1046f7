"""Windowed aggregates, written down from Kafka Streams' semantics, then at random."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.lowering.stateful.fold import Fold
from ottla.streams.lowering.stateful.session_window import SessionWindows
from ottla.streams.lowering.stateful.sliding_window import SlidingWindows
from ottla.streams.lowering.stateful.time_window import TimeWindows, starts
from tests.unit.streams.stateful.driver import TEXT, Driver, changes, record, run, table_of

COUNT = Fold("count")
JOIN = Fold("reduce", adders=(lambda aggregate, value: aggregate + value,))
LIST = Fold(
    "aggregate",
    initializer=tuple,
    adders=(lambda key, value, aggregate: (*aggregate, value),),
    merger=lambda key, one, other: (*one, *other),
)

KINDS = {
    "tumbling": lambda fold, grace, closing: TimeWindows(fold, TEXT, 10, 10, grace, closing=closing),
    "hopping": lambda fold, grace, closing: TimeWindows(fold, TEXT, 10, 4, grace, closing=closing),
    "sliding": lambda fold, grace, closing: SlidingWindows(fold, TEXT, 10, grace, closing=closing),
    "session": lambda fold, grace, closing: SessionWindows(fold, TEXT, 5, grace, closing=closing),
}

records_given = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 60)), min_size=1, max_size=25
)
cuts_given = st.lists(st.integers(1, 25), max_size=5)


def tumbling(fold: Fold, grace: int = 0, closing: bool = False) -> Any:
    return lambda: TimeWindows(fold, TEXT, 10, 10, grace, closing=closing)


def test_a_tumbling_count_gives_out_every_update() -> None:
    made = run(
        tumbling(COUNT), [record("a", "x", 1), record("b", "x", 2), record("a", "x", 9), record("a", "x", 10)]
    )
    assert made == [
        (("a", 0, 10), 1, 1),
        (("b", 0, 10), 1, 2),
        (("a", 0, 10), 2, 9),
        (("a", 10, 20), 1, 10),
    ]


def test_the_time_of_an_update_is_the_latest_of_its_window() -> None:
    made = run(tumbling(COUNT), [record("a", "x", 7), record("a", "x", 3)])
    assert made == [(("a", 0, 10), 1, 7), (("a", 0, 10), 2, 7)]


def test_records_without_key_or_value_are_dropped_and_move_no_time() -> None:
    made = run(tumbling(COUNT), [record(None, "x", 50), record("a", None, 50), record("a", "x", 1)])
    assert made == [(("a", 0, 10), 1, 1)]


def test_a_record_is_late_once_stream_time_has_reached_end_and_grace() -> None:
    given = [
        record("a", "x", 1),
        record("b", "x", 12),
        record("a", "x", 2),
        record("b", "x", 13),
        record("a", "x", 3),
    ]
    # [0, 10) with a grace of 3 closes at 13, by the other key's record.
    made = run(tumbling(COUNT, grace=3), given)
    assert [each for each in made if each[0][0] == "a"] == [(("a", 0, 10), 1, 1), (("a", 0, 10), 2, 2)]


def test_final_results_leave_when_their_window_closes() -> None:
    given = [
        record("a", "x", 1),
        record("b", "x", 5),
        record("a", "x", 9),
        record("a", "x", 11),
        record("a", "x", 12),
    ]
    assert run(tumbling(COUNT, grace=1, closing=True), given) == [(("a", 0, 10), 2, 9), (("b", 0, 10), 1, 5)]


def test_a_hopping_window_shares_records() -> None:
    assert list(starts(5, 10, 4)) == [0, 4]
    assert list(starts(12, 10, 4)) == [4, 8, 12]
    made = run(lambda: TimeWindows(COUNT, TEXT, 10, 5, 0), [record("a", "x", 7), record("a", "x", 12)])
    assert made == [
        (("a", 0, 10), 1, 7),
        (("a", 5, 15), 1, 7),
        (("a", 5, 15), 2, 12),
        (("a", 10, 20), 1, 12),
    ]


def test_sliding_windows_of_the_documentation() -> None:
    """Records A 8000, B 9200, C 12400 with a difference of 5000 (Kafka Streams' developer guide, sliding windows)."""
    given = [record("k", "A", 8000), record("k", "B", 9200), record("k", "C", 12400)]
    made = changes(lambda: SlidingWindows(JOIN, TEXT, 5000, 0), given)
    assert {key[1:]: value for key, value in table_of(made).items()} == {
        (3000, 8000): "A",
        (4200, 9200): "AB",
        (7400, 12400): "ABC",
        (8001, 13001): "BC",
        (9201, 14201): "C",
    }


def test_an_early_record_shares_the_first_sliding_window() -> None:
    made = changes(lambda: SlidingWindows(JOIN, TEXT, 10, 0), [record("k", "A", 2), record("k", "B", 5)])
    assert {key[1:]: value for key, value in table_of(made).items()} == {(0, 10): "AB", (3, 13): "B"}


def test_a_session_grows_and_merges_with_tombstones() -> None:
    given = [record("a", "x", 0), record("a", "y", 10), record("a", "z", 5)]
    made = run(lambda: SessionWindows(JOIN, TEXT, 5, 10), given)
    assert made == [
        (("a", 0, 0), "x", 0),
        (("a", 10, 10), "y", 10),
        (("a", 0, 0), None, 0),
        (("a", 10, 10), None, 10),
        (("a", 0, 10), "xyz", 10),
    ]


def test_sessions_that_become_one_have_everything_in_it() -> None:
    given = [record("a", "x", 0), record("a", "y", 10), record("a", "z", 5)]
    assert run(lambda: SessionWindows(LIST, TEXT, 5, 10), given)[-1] == (("a", 0, 10), ("x", "y", "z"), 10)
    assert run(lambda: SessionWindows(COUNT, TEXT, 5, 10), given)[-1] == (("a", 0, 10), 3, 10)


def test_a_session_that_is_closed_takes_nothing_in() -> None:
    # [0, 0] is closed once stream time is beyond 0 + gap 5 + grace 10; a session of its own is still open for 4.
    given = [record("a", "x", 0), record("b", "x", 16), record("a", "y", 4), record("a", "z", 5)]
    made = run(lambda: SessionWindows(JOIN, TEXT, 5, 10), given)
    assert made[2:] == [(("a", 4, 4), "y", 4), (("a", 4, 4), None, 4), (("a", 4, 5), "yz", 5)]
    # The session [4, 4] is open until stream time is beyond 4 + 5 + 10.
    for now, count in ((19, 3), (20, 2)):
        late = [record("a", "x", 0), record("b", "x", now), record("a", "y", 4)]
        assert len(run(lambda: SessionWindows(COUNT, TEXT, 5, 10), late)) == count


def test_final_sessions_leave_when_they_close() -> None:
    given = [record("a", "x", 0), record("a", "y", 4), record("b", "x", 9), record("b", "y", 10)]
    made = run(lambda: SessionWindows(COUNT, TEXT, 5, 0, closing=True), given)
    assert made == [(("a", 0, 4), 2, 4)]


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(given=records_given, cuts=cuts_given, grace=st.sampled_from([0, 3, 1000]))
def test_where_batches_end_changes_nothing(
    kind: str, closing: bool, given: list[tuple[str, str, int]], cuts: list[int], grace: int
) -> None:
    records = [record(*each) for each in given]

    def make() -> Any:
        return KINDS[kind](LIST, grace, closing)

    assert changes(make, records, cuts) == changes(make, records)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(given=records_given, grace=st.sampled_from([0, 3, 20]))
def test_changes_say_what_was_there_before(kind: str, given: list[tuple[str, str, int]], grace: int) -> None:
    table_of(changes(lambda: KINDS[kind](LIST, grace, False), [record(*each) for each in given]))


@settings(max_examples=60, deadline=None)
@given(given=records_given, cuts=cuts_given)
def test_time_windows_hold_all_their_records(given: list[tuple[str, str, int]], cuts: list[int]) -> None:
    made = table_of(
        changes(lambda: TimeWindows(LIST, TEXT, 10, 4, 1000), [record(*each) for each in given], cuts)
    )
    expected: dict[Any, tuple[str, ...]] = {}
    for key, value, time in given:
        for start in starts(time, 10, 4):
            expected[key, start, start + 10] = (*expected.get((key, start, start + 10), ()), value)
    assert made == expected


@settings(max_examples=60, deadline=None)
@given(given=records_given, cuts=cuts_given)
def test_sliding_windows_hold_all_their_records(given: list[tuple[str, str, int]], cuts: list[int]) -> None:
    """With grace for all, each window has the records in it, and each record has the window that ends with it."""
    made = changes(lambda: SlidingWindows(LIST, TEXT, 10, 1000), [record(*each) for each in given], cuts)
    last = {key: value for key, value, _, _ in made}
    for (key, start, end), value in last.items():
        inside = [each for name, each, time in given if name == key and start <= time <= end]
        assert sorted(value) == sorted(inside), (key, start, end)
    for key, _, time in given:
        assert (key, max(0, time - 10), max(10, time)) in last
        if any(name == key and time < other <= time + 11 for name, _, other in given):
            assert (key, time + 1, time + 11) in last


@settings(max_examples=60, deadline=None)
@given(given=records_given, cuts=cuts_given)
def test_sessions_are_the_groups_of_near_records(given: list[tuple[str, str, int]], cuts: list[int]) -> None:
    made = table_of(
        changes(lambda: SessionWindows(COUNT, TEXT, 5, 1000), [record(*each) for each in given], cuts)
    )
    expected: dict[Any, int] = {}
    for key in "ab":
        session: list[int] = []
        for time in sorted(time for name, _, time in given if name == key):
            if session and time - session[-1] > 5:
                expected[key, session[0], session[-1]] = len(session)
                session = []
            session.append(time)
        if session:
            expected[key, session[0], session[-1]] = len(session)
    assert made == expected


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(given=records_given, cuts=cuts_given, grace=st.sampled_from([0, 7]))
def test_final_results_are_the_last_updates(
    kind: str, given: list[tuple[str, str, int]], cuts: list[int], grace: int
) -> None:
    # A record far ahead closes everything.
    records = [*(record(*each) for each in given), record("c", "x", 10_000)]
    updates = {
        key: value
        for key, value, _, _ in changes(lambda: KINDS[kind](LIST, grace, False), records)
        if key[0] != "c"
    }
    final = changes(lambda: KINDS[kind](LIST, grace, True), records, cuts)
    assert {key: value for key, value, _, _ in final} == {
        key: value for key, value in updates.items() if value is not None
    }
    assert len({each[0] for each in final}) == len(final), "a window has two final results"


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_for_ever(kind: str, closing: bool) -> None:
    driver = Driver(lambda: KINDS[kind](COUNT, 3, closing))
    most = 0
    for n in range(200):
        driver.batch([record("a", "x", n * 10), record(f"k{n}", "x", n * 10 + 1)])
        most = max(most, sum(driver.entries(store) for store in driver.backings))
    assert most < 60
