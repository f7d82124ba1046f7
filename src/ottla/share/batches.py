"""State batches: how the durable state of a share partition is laid out, and how a change is laid over it.

B1  Of two words about one offset that with the higher delivery count holds, and of two with the same count that with
    the higher delivery state: a count never falls, and a record that is done with stays so.
B2  Batches come out in order and do not overlap.
B3  A batch that ends before it begins says nothing, and is dropped, whoever sent it or wrote it to the log: merged with
    others it would be merged for ever.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple


class StateBatch(NamedTuple):
    """Offsets in one state, both ends included. In this order, batches sort as they are merged."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


def combine(
    old: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Lay `new` over `old`, and drop what is below the start; no start is -1.

    Neighbours alike become one where they meet while being merged, which is not everywhere: the result is what Apache
    Kafka writes.
    """
    rest = [
        _clipped(batch, start_offset)
        for batch in (*old, *new)
        if batch.last_offset >= start_offset and batch.last_offset >= batch.first_offset
    ]
    if len(rest) < 2:
        return tuple(rest)
    heapify(rest)
    found = []
    batch = heappop(rest)
    while rest:
        if _touch(batch, rest[0]):
            for piece in _merged(batch, heappop(rest)):
                heappush(rest, piece)
        else:
            found.append(batch)
        batch = heappop(rest)
    found.append(batch)
    return tuple(found)


def _clipped(batch: StateBatch, start_offset: int) -> StateBatch:
    return batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)


def _touch(one: StateBatch, other: StateBatch) -> bool:
    if other.first_offset <= one.last_offset:
        return True
    return one.last_offset + 1 == other.first_offset and one[2:] == other[2:]


def _merged(one: StateBatch, other: StateBatch) -> Iterable[StateBatch]:
    """Resolve two batches that touch, `one` the first in order."""
    if one[2:] == other[2:]:
        yield one._replace(last_offset=max(one.last_offset, other.last_offset))
    elif one[2:] > other[2:]:
        yield one
        if other.last_offset > one.last_offset:
            yield other._replace(first_offset=one.last_offset + 1)
    else:
        if one.first_offset < other.first_offset:
            yield one._replace(last_offset=other.first_offset - 1)
        yield other
        if other.last_offset < one.last_offset:
            yield one._replace(first_offset=other.last_offset + 1)
