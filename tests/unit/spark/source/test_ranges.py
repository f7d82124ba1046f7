"""Ranges cover what is to be read exactly once, and keep the limits."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.record import TopicPartition
from ottla.spark.source.ranges import OffsetRange, divide, ration, waiting

OFFSETS = st.integers(0, 1 << 62)
SIZES = st.one_of(st.integers(0, 50), st.integers(0, 1 << 40))


@st.composite
def some_ranges(draw):
    sizes = draw(st.lists(SIZES, max_size=8))
    starts = [draw(OFFSETS) for _ in sizes]
    return [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(zip(starts, sizes, strict=True))
    ]


@given(some_ranges(), st.none() | st.integers(1, 60), st.none() | st.integers(1 << 34, 1 << 41))
def test_parts_cover_the_whole_without_overlap(ranges, partitions_min, records_max):
    parts = divide(ranges, partitions_min, records_max)
    assert all(part.size > 0 for part in parts)
    for whole in ranges:
        at = whole.start
        for part in (each for each in parts if each.partition == whole.partition):
            assert part.start == at
            at = part.end
        assert at == whole.end


@given(some_ranges(), st.integers(1 << 34, 1 << 41), st.none() | st.integers(1, 60))
def test_no_task_gets_more_than_it_may(ranges, records_max, partitions_min):
    assert all(part.size <= records_max for part in divide(ranges, partitions_min, records_max))


@given(some_ranges(), st.integers(1, 60))
def test_there_are_about_as_many_tasks_as_asked_for(ranges, partitions_min):
    parts = divide(ranges, partitions_min)
    wholes = [each for each in ranges if each.size > 0]
    assert len(wholes) <= len(parts)
    # Rounding takes or adds half a task a partition at most.
    assert len(parts) <= max(partitions_min, len(wholes)) + len(wholes)


@pytest.mark.parametrize(
    ("partitions_min", "records_max", "wholes", "cuts"),
    [
        (None, None, [(1, 2), (1, 1)], [[1, 2], []]),
        (4, None, [(1, 5)], [[1, 2, 3, 4, 5]]),
        (4, None, [(1, 5), (1, 21)], [[1, 5], [1, 7, 14, 21]]),
        (4, None, [(1, 1), (1, 21)], [[], [1, 6, 11, 16, 21]]),
        (4, None, [(1, 2), (1, 1001)], [[1, 2], [1, 334, 667, 1001]]),
        (1, None, [(1, 5), (1, 21)], [[1, 5], [1, 21]]),
        (3, None, [(1, 11)], [[1, 4, 7, 11]]),
        (6, None, [(0, 10), (0, 10), (0, 1)], [[0, 3, 6, 10], [0, 3, 6, 10], [0, 1]]),
        (6, None, [(0, 500), (0, 12000), (0, 15001)], [[0, 500], [0, 6000, 12000], [0, 5000, 10000, 15001]]),
        (6, None, [(0, 1), (0, 1), (0, 10000)], [[0, 1], [0, 1], [0, 2500, 5000, 7500, 10000]]),
        (None, 4, [(1, 6)], [[1, 3, 6]]),
        (None, 20, [(1, 40), (1, 50)], [[1, 20, 40], [1, 17, 33, 50]]),
        (1, 20, [(1, 40)], [[1, 20, 40]]),
        (4, 20, [(1, 40)], [[1, 10, 20, 30, 40]]),
    ],
)
def test_as_sparks_own_source_divides(partitions_min, records_max, wholes, cuts):
    ranges = [OffsetRange(TopicPartition("t", number), *whole) for number, whole in enumerate(wholes)]
    expected = [
        OffsetRange(TopicPartition("t", number), *part)
        for number, at in enumerate(cuts)
        for part in pairwise(at)
    ]
    assert divide(ranges, partitions_min, records_max) == expected


@given(some_ranges(), st.integers(1, 1 << 41))
def test_a_limit_is_kept_and_nobody_starves(ranges, limit):
    starts = {each.partition: each.start for each in ranges}
    ends = {each.partition: each.end for each in ranges}
    cut = ration(limit, starts, ends)
    assert cut.keys() == ends.keys()
    taken = {each: cut[each] - starts[each] for each in cut}
    waits = {each.partition: each.size for each in ranges}
    assert all(0 <= taken[each] <= waits[each] for each in taken)
    assert all(taken[each] > 0 for each in taken if waits[each])
    total = sum(waits.values())
    starved = sum(1 for each in waits if waits[each] and waits[each] * limit < total)
    assert sum(taken.values()) <= limit + starved
    if total <= limit:
        assert cut == ends


def test_a_limit_is_shared_out_in_proportion():
    a, b, c = (TopicPartition("t", n) for n in range(3))
    assert ration(10, {a: 0, b: 0, c: 5}, {a: 30, b: 10, c: 5}) == {a: 7, b: 2, c: 5}
    assert ration(2, {a: 0, b: 0}, {a: 1000, b: 1}) == {a: 1, b: 1}
    assert ration(1, {a: 0}, {a: 5, b: 9}) == {a: 1, b: 9}


def test_offsets_that_went_back_count_for_nothing():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert ration(3, {a: 10, b: 0}, {a: 4, b: 6}) == {a: 4, b: 3}
    assert waiting({a: 10, b: 0}, {a: 4, b: 6}) == 6
    assert divide([OffsetRange(a, 10, 4)]) == []
