"""Many keys hashed at once are keys hashed one by one."""

import random

import numpy as np
import pytest

from ottla.client.producer.murmur2 import murmur2 as one_by_one
from ottla.client.producer.murmur2 import partition_of
from ottla.spark.sink.hashing import murmur2, partitions_of


def columns(keys: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([len(key) for key in keys], np.int64)
    return np.frombuffer(b"".join(keys), np.uint8), np.cumsum(sizes) - sizes, sizes


@pytest.mark.parametrize("longest", [0, 1, 3, 4, 5, 8, 21, 300])
def test_as_one_by_one(longest: int) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    keys = [chance.randbytes(chance.randint(0, longest)) for _ in range(500)]
    assert murmur2(*columns(keys)).tolist() == [one_by_one(key) for key in keys], f"seed {seed}"
    for count in (1, 2, 7, 1000):
        assert partitions_of(*columns(keys), count).tolist() == [partition_of(key, count) for key in keys]


def test_keys_of_one_length() -> None:
    keys = [b"key-%08d" % number for number in range(1000)]
    assert murmur2(*columns(keys)).tolist() == [one_by_one(key) for key in keys]


def test_some_of_many() -> None:
    data, starts, sizes = columns([b"alpha", b"", b"gamma-gamma", b"d"])
    who = np.array([3, 2])
    assert murmur2(data, starts[who], sizes[who]).tolist() == [one_by_one(b"d"), one_by_one(b"gamma-gamma")]


def test_no_keys() -> None:
    assert murmur2(*columns([])).tolist() == []
