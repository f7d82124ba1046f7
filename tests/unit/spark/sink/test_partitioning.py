"""A row goes where it says, else by its key, else with its neighbours."""

import numpy as np
import pyarrow as pa
import pytest

from ottla.client.errors import TopicUnknown
from ottla.client.producer.murmur2 import partition_of
from ottla.spark.sink.partitioning import Partitioning, Target
from ottla.world.entropy import SeededEntropy

FOUR = Target("orders", 4, (0, 1, 2, 3))


def partitioning(**more: bool) -> Partitioning:
    return Partitioning(SeededEntropy(1), **more)


def sizes(count: int, each: int = 100) -> np.ndarray:
    return np.full(count, each, np.int64)


def test_what_a_row_says() -> None:
    said = pa.array([3, 0, 1], pa.int32())
    key = pa.array([b"a", b"b", b"c"], pa.binary())
    assert partitioning().choose(FOUR, said, key, sizes(3)).tolist() == [3, 0, 1]


@pytest.mark.parametrize("wrong", [4, -1, -7])
def test_a_partition_that_is_not_there(wrong: int) -> None:
    with pytest.raises(TopicUnknown, match=f"partition {wrong} of topic orders, which has 4\nhint: "):
        partitioning().choose(FOUR, pa.array([0, wrong], pa.int32()), None, sizes(2))


def test_by_key() -> None:
    keys = [b"%d" % number for number in range(100)]
    found = partitioning().choose(FOUR, None, pa.array(keys, pa.binary()), sizes(100))
    assert found.tolist() == [partition_of(key, 4) for key in keys]


def test_by_key_in_the_middle_of_a_column() -> None:
    keys = [b"skipped", b"alpha", b"beta"]
    found = partitioning().choose(FOUR, None, pa.array(keys, pa.binary())[1:], sizes(2))
    assert found.tolist() == [partition_of(key, 4) for key in keys[1:]]


def test_each_row_for_itself() -> None:
    said = pa.array([2, None, None, None], pa.int32())
    keys = pa.array([b"x", b"alpha", None, None], pa.binary())
    found = partitioning().choose(FOUR, said, keys, sizes(4)).tolist()
    assert found[:2] == [2, partition_of(b"alpha", 4)]
    assert found[2] == found[3]


def test_keys_that_are_to_be_ignored() -> None:
    keys = pa.array([b"%d" % number for number in range(50)], pa.binary())
    assert len(set(partitioning(ignores_keys=True).choose(FOUR, None, keys, sizes(50)).tolist())) == 1


def test_few_rows_without_a_key_stay_together() -> None:
    choice = partitioning()
    first = choice.choose(FOUR, None, None, sizes(10)).tolist()
    second = choice.choose(FOUR, None, None, sizes(10)).tolist()
    assert len(set(first)) == len(set(second)) == 1
    assert first != second, "the next ones take the next partition"


def test_many_rows_without_a_key_are_spread_in_runs() -> None:
    found = partitioning().choose(FOUR, None, None, sizes(10_000))
    assert np.bincount(found).tolist() == [2500] * 4
    assert np.count_nonzero(np.diff(found)) == 3


def test_no_more_runs_than_are_worth_a_batch() -> None:
    found = partitioning().choose(FOUR, None, None, sizes(400))
    assert len(set(found.tolist())) == 2, "40,000 bytes are two batches of 16 KB"


def test_partitions_without_a_leader_are_passed_over() -> None:
    lame = Target("orders", 4, (1, 3))
    assert set(partitioning().choose(lame, None, None, sizes(10_000)).tolist()) == {1, 3}


def test_any_partition_may_be_the_first() -> None:
    firsts = {
        int(Partitioning(SeededEntropy(seed)).choose(FOUR, None, None, sizes(1))[0]) for seed in range(50)
    }
    assert firsts == {0, 1, 2, 3}
