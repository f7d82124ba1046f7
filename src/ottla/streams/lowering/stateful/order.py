"""In which order an operator takes the records of a micro-batch.

They come from queues: the partitions of topics, and the partitions of operators before this one. Kafka Streams takes
from each queue in the order of offsets, and always from the queue whose next record has the earliest timestamp. That
is the same as sorting by the latest timestamp seen so far in a record's queue, then by queue and offset.

O1  Records of one queue keep their order, whatever their timestamps are.
O2  Between queues the earlier timestamp goes first; of equal ones, the input with the lower rank.
O3  Where micro-batches begin and end changes nothing within a queue.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


def merged(queues: Whole, ranks: Whole, offsets: Whole, timestamps: Whole) -> Whole:
    """Return the numbers of records in the order in which to take them.

    `queues` says which queue each stands in, `ranks` which goes first when timestamps are equal. Records of one queue
    and one offset stay as they came.
    """
    count = len(queues)
    if not count:
        return np.zeros(0, np.int64)
    by_queue = np.lexsort((offsets, queues))
    stamps = timestamps[by_queue]
    starts = np.flatnonzero(np.diff(queues[by_queue], prepend=queues[by_queue[0]] - 1))
    reached = np.empty(count, np.int64)
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        reached[start:end] = np.maximum.accumulate(stamps[start:end])
    return by_queue[np.lexsort((np.arange(count), ranks[by_queue], reached))]


def topic_numbers(topics: Sequence[str | None]) -> Whole:
    """Return a number for each topic: by its name, so that it does not matter what came first."""
    numbers = {name: n for n, name in enumerate(sorted({each or "" for each in topics}))}
    return np.fromiter((numbers[each or ""] for each in topics), np.int64, len(topics))


def queue_numbers(sides: Whole, topics: Whole, partitions: Whole) -> Whole:
    """Return a number for the queue of each record: `topics` are numbers already, below 2^20."""
    return (sides << 52) | (topics << 32) | (partitions & 0xFFFF_FFFF)
