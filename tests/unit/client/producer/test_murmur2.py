"""Kafka's own examples, and another client's answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as theirs

from ottla.client.producer.murmur2 import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_examples(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFF_FFFF


@given(st.binary(max_size=300))
def test_as_another_client(key: bytes) -> None:
    assert murmur2(key) == theirs(key) & 0xFFFF_FFFF


def test_partitions() -> None:
    assert partition_of(b"foobar", 1000) == (-790332482 & 0x7FFF_FFFF) % 1000
    assert {partition_of(b"%d" % number, 7) for number in range(200)} == set(range(7))
