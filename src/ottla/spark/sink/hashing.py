"""Murmur2 of many keys at once, as `client.producer.murmur` has it of one.

All keys are a word further with each round, and those that have no word left wait for the end. So there are as many
rounds as the longest key has words, each over the keys that are as long.
"""

import numpy as np
from numpy.typing import NDArray

_SEED = np.uint32(0x9747B28C)
_MIX = np.uint32(0x5BD1E995)
_INT32_MAX = np.uint32(0x7FFF_FFFF)
_WORD = 4


def murmur2(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the hashes of the keys that lie in `data` from `starts` on, as unsigned numbers of 32 bits."""
    # The last word of a key may be short, and the last key's would end behind the data.
    padded = np.zeros(len(data) + _WORD, np.uint8)
    padded[: len(data)] = data
    words = np.ndarray((len(padded) - _WORD + 1,), np.dtype("<u4"), padded, strides=(1,))
    value = _SEED ^ sizes.astype(np.uint32)
    counts = sizes // _WORD
    who: NDArray[np.int64] | slice = slice(None)
    for number in range(int(counts.max(initial=0))):
        if number >= counts.min():
            who = np.flatnonzero(counts > number)
        word = words[starts[who] + number * _WORD].astype(np.uint32) * _MIX
        value[who] = value[who] * _MIX ^ (word ^ word >> np.uint32(24)) * _MIX
    rest = sizes & 3
    who = np.flatnonzero(rest)
    if len(who):
        kept = (np.uint32(1) << (rest[who].astype(np.uint32) * np.uint32(8))) - np.uint32(1)
        value[who] = (value[who] ^ (words[starts[who] + counts[who] * _WORD] & kept)) * _MIX
    value = (value ^ value >> np.uint32(13)) * _MIX
    return value ^ value >> np.uint32(15)


def partitions_of(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return which of `count` partitions each key belongs to, as every client of Kafka's kind has it."""
    return ((murmur2(data, starts, sizes) & _INT32_MAX) % np.uint32(count)).astype(np.int64)
