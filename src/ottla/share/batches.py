"""State batches: how the durable state of a share partition is laid out, and how a change is laid over it.

B1  Of two words about one offset that with the higher delivery count holds, and of two with the same count that with
    the higher delivery state: a count never falls, and a record that is done with stays so.
B2  Batches come out in order and do not overlap.
B3  A batch that ends before it begins says nothing, and is dropped, whoever sent it or wrote it to the log: merged with
    others it would be merged for ever.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

BATCHES_MAX = 10_000  # as many as share.partition.max.record.locks allows at the most
_OVERLAPPING_MAX = 32  # in one change
_STATES = frozenset({0, 2, 3, 4})  # available, acknowledged, archiving, archived; nobody holds a record for good


class StateBatch(NamedTuple):
    """Offsets in one state, both ends included. In this order, batches sort as they are merged."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


def nonsense(batches: Sequence[StateBatch]) -> str | None:
    """Say what is wrong with a change that a peer sends; None if nothing is.

    A leader says one thing of an offset. Where many batches overlap, merging them would take minutes.
    """
    if len(batches) > BATCHES_MAX:
        return f"more than {BATCHES_MAX} batches"
    behind = 0
    for batch in sorted(batches):
        if batch.last_offset < batch.first_offset:
            continue  # B3
        if batch.first_offset < 0 or (batch.first_offset < behind and len(batches) > _OVERLAPPING_MAX):
            return f"there is no offset {batch.first_offset}, or more than one thing is said of it"
        if batch.delivery_state not in _STATES or batch.delivery_count < 0:
            return f"there is no delivery state {batch.delivery_state} with count {batch.delivery_count}"
        behind = max(behind, batch.last_offset + 1)
    return None


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
