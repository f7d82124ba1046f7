"""Small ranges share a task: none is left out, none is cut, and the same ranges make the same tasks."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.source.bundle import Bundle, bundled, ranges_of
from ottla.spark.source.task import Task


def tasks(sizes: list[int]) -> list[Task]:
    return [Task("t", number, 5, 5 + size) for number, size in enumerate(sizes)]


def shape(sizes: list[int], few: int) -> list[list[int]]:
    return [[each.partition for each in ranges_of(part)] for part in bundled(tasks(sizes), few)]


def test_what_is_small_goes_together_and_what_is_large_alone() -> None:
    assert shape([1, 2, 3], 10) == [[0, 1, 2]]
    assert shape([1, 50, 2], 10) == [[1], [0, 2]]
    assert shape([4, 4, 4, 9, 1], 10) == [[0, 1], [2], [3, 4]]
    assert shape([10, 10], 10) == [[0], [1]]
    assert shape([1, 2, 3], 0) == [[0], [1], [2]]
    assert shape([], 10) == []


def test_one_alone_is_a_task_as_ever() -> None:
    (only,) = bundled(tasks([3]), 10)
    assert isinstance(only, Task)
    assert ranges_of(Bundle(())) == ()


@given(st.lists(st.integers(1, 40)), st.integers(0, 50))
def test_every_range_is_in_one_task(sizes: list[int], few: int) -> None:
    found = shape(sizes, few)
    assert sorted(each for part in found for each in part) == list(range(len(sizes)))
    for part in found:
        assert len(part) == 1 or sum(sizes[each] for each in part) <= few
