"""The checker finds what is wrong with histories that are wrong, each by its own rule, and nothing in a good one."""

from collections.abc import Callable

import pytest

from tests.faults.spark.history import Row, Sight, violations

# Two batches over two lines, each line in a partition of its own; offsets have gaps where markers are.
EXPECTED = {
    0: {("a", 0), ("a", 1), ("b", 0)},
    1: {("a", 2), ("b", 1), ("b", 2)},
}
ROWS = [
    Row(0, 0, 0, "a", 0, (7, 0)),
    Row(0, 1, 0, "a", 1, (7, 0)),
    Row(1, 0, 0, "b", 0, (7, 0)),
    Row(0, 3, 1, "a", 2, (7, 1)),
    Row(1, 2, 1, "b", 1, (7, 1)),
    Row(1, 3, 1, "b", 2, (7, 1)),
]


def sights(rows: list[Row], at: Callable[[Row], float] = lambda row: float(row.batch)) -> list[Sight]:
    return [Sight(at(row), *row[:5]) for row in rows]


def rules(found: list[str]) -> set[str]:
    return {each.split()[0] for each in found}


def test_a_good_history_has_nothing_wrong() -> None:
    assert violations(EXPECTED, ROWS, sights(ROWS)) == []
    # The rows of partition 1 may be seen before those of partition 0.
    assert violations(EXPECTED, ROWS, sights(sorted(ROWS, key=lambda row: -row.partition))) == []
    # A reader may have been ended before it saw the last batch.
    assert violations(EXPECTED, ROWS, sights(ROWS[:3])) == []


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_lost_row(number: int) -> None:
    left = ROWS[:number] + ROWS[number + 1 :]
    assert rules(violations(EXPECTED, left)) == {"H1"}


def test_a_whole_batch_is_lost() -> None:
    assert rules(violations(EXPECTED, ROWS[:3])) == {"H1"}
    assert rules(violations(EXPECTED, ROWS[3:])) == {"H1"}


def test_a_row_twice_within_its_transaction() -> None:
    assert rules(violations(EXPECTED, [*ROWS, Row(1, 4, 1, "b", 2, (7, 1))])) == {"H1", "H2"}


def test_a_batch_twice_by_a_replay() -> None:
    again = [row._replace(offset=row.offset + 10, transaction=(7, 2)) for row in ROWS[3:]]
    assert rules(violations(EXPECTED, ROWS + again)) == {"H1", "H2", "H3"}


def test_a_row_in_two_batches() -> None:
    """As when offsets and rows part: the source read again what an earlier batch had."""
    expected = EXPECTED | {1: EXPECTED[1] | {("a", 1)}}
    again = [*ROWS[:3], Row(0, 2, 1, "a", 1, (7, 1)), *ROWS[3:]]
    assert rules(violations(expected, again)) == {"H1", "H2"}


def test_rows_of_nobody() -> None:
    assert rules(violations(EXPECTED, [*ROWS, Row(0, 9, 2, "a", 3, (7, 2))])) == {"H1"}


def test_places_in_a_line_out_of_order() -> None:
    wrong = [*ROWS[:4], ROWS[4]._replace(offset=3), ROWS[5]._replace(offset=2)]
    assert rules(violations(EXPECTED, wrong)) == {"H2"}


def test_batches_out_of_order() -> None:
    # The lines are those of a count: nothing but the number of the batch tells.
    expected = {0: {("a", 1)}, 1: {("b", 1)}}
    good = [Row(0, 0, 0, "a", 1, (7, 0)), Row(0, 2, 1, "b", 1, (7, 1))]
    assert violations(expected, good) == []
    assert rules(violations(expected, [good[0]._replace(offset=4), good[1]])) == {"H2"}


def test_a_line_that_wanders() -> None:
    assert rules(violations(EXPECTED, [*ROWS[:5], ROWS[5]._replace(partition=0, offset=4)])) == {"H2"}


def test_a_batch_of_two_transactions() -> None:
    """As when each task commits for itself: all is there once, and yet a batch was not atomic."""
    assert rules(violations(EXPECTED, [*ROWS[:5], ROWS[5]._replace(transaction=(8, 0))])) == {"H3"}


def test_a_transaction_of_two_batches() -> None:
    assert rules(violations(EXPECTED, [row._replace(transaction=(7, 0)) for row in ROWS])) == {"H3"}


def test_a_reader_saw_what_was_aborted_later() -> None:
    shown = [*sights(ROWS[:3]), Sight(0.5, 1, 1, 1, "b", 1), *sights(ROWS[3:])]
    found = violations(EXPECTED, ROWS, shown)
    assert rules(found) == {"H4"} and "(1, 1, 'b', 1) was seen" in found[0]


def test_a_reader_missed_a_row() -> None:
    assert rules(violations(EXPECTED, ROWS, sights(ROWS[:4] + ROWS[5:]))) == {"H4", "H5"}


def test_a_batch_that_was_seen_in_part_for_long() -> None:
    """As when the driver died between the commits of two tasks, and its successor made the second good."""
    slow = sights(ROWS, lambda row: row.batch + 8.0 * (row.line == "b"))
    assert rules(violations(EXPECTED, ROWS, slow)) == {"H5"}
    # The same, and the broker was away for most of it.
    assert violations(EXPECTED, ROWS, slow, [(0.5, 8.9)]) == []
    assert rules(violations(EXPECTED, ROWS, slow, [(20.0, 30.0)])) == {"H5"}
