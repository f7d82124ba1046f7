"""The numbers that operator partitions have for Spark.

Spark divides groups among its own partitions by its own hash. Operator partition p of n is called by a number that
Spark's hash puts into partition p of n, so that with as many of Spark's partitions each gets one. The numbers depend
on n alone: state is kept under them.
"""

from functools import cache

_UINT32 = 0xFFFF_FFFF


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _UINT32


def spark_hash(given: int) -> int:
    """Return what Spark's hash of an INT is: Murmur3 with the seed 42, as a signed number."""
    word = _rotated((given & _UINT32) * 0xCC9E2D51 & _UINT32, 15) * 0x1B873593 & _UINT32
    value = (_rotated(42 ^ word, 13) * 5 + 0xE6546B64) & _UINT32
    value ^= 4
    value = (value ^ value >> 16) * 0x85EBCA6B & _UINT32
    value = (value ^ value >> 13) * 0xC2B2AE35 & _UINT32
    value ^= value >> 16
    return value - (1 << 32) if value & 0x8000_0000 else value


@cache
def labels(partitions: int) -> tuple[int, ...]:
    """Return the number of each operator partition."""
    found: dict[int, int] = {}
    given = 0
    while len(found) < partitions:
        found.setdefault(spark_hash(given) % partitions, given)
        given += 1
    return tuple(found[n] for n in range(partitions))


@cache
def partition_called(label: int, partitions: int) -> int:
    """Return which operator partition has that number."""
    return labels(partitions).index(label)
