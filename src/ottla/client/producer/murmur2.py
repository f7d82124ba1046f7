"""Murmur2, by which Kafka's clients agree on the partition of a key."""

import struct

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_UINT32 = 0xFFFF_FFFF
_INT32_MAX = 0x7FFF_FFFF
_WORDS = tuple(struct.Struct(f"<{count}I").unpack_from for count in range(33))


def murmur2(data: bytes) -> int:
    """Return the hash of `data` as an unsigned number of 32 bits."""
    size = len(data)
    count = size >> 2
    words = _WORDS[count](data) if count < len(_WORDS) else struct.unpack_from(f"<{count}I", data)
    value = _SEED ^ size
    for word in words:
        word = word * _MIX & _UINT32
        value = (value * _MIX ^ (word ^ word >> 24) * _MIX) & _UINT32
    rest = size & 3
    if rest:
        value = (value ^ int.from_bytes(data[-rest:], "little")) * _MIX & _UINT32
    value = (value ^ value >> 13) * _MIX & _UINT32
    return value ^ value >> 15


def partition_of(key: bytes, count: int) -> int:
    """Return which of `count` partitions a key belongs to, as every client of Kafka's kind has it."""
    return (murmur2(key) & _INT32_MAX) % count
