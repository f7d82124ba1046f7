"""Ranges of offsets: how much of each partition goes into a batch, and how that is shared out to tasks.

R1  The ranges of a partition follow one another without gap or overlap, from its start to its end.
R2  A limit is shared out in proportion to what waits in each partition, and none that has something gets nothing. So
    there may be more than the limit by as many offsets as there are partitions with less than one to their share.

Offsets are counted, not records: where compaction or transactions left holes there are fewer.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from ottla.client.record import TopicPartition


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` on and before `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets there are in it."""
        return self.end - self.start


def divide(
    ranges: Iterable[OffsetRange], partitions_min: int | None = None, records_max: int | None = None
) -> list[OffsetRange]:
    """Return the ranges of the tasks: none empty, none above `records_max`, about `partitions_min` if that is more.

    The large ones are split for that, and the small ones stay whole.
    """
    whole = [each for each in ranges if each.size > 0]
    if records_max is not None:
        whole = [part for each in whole for part in _parts(each, -(-each.size // records_max))]
    if partitions_min is None or len(whole) >= partitions_min:
        return whole
    total = sum(each.size for each in whole)
    shares = [_share(each.size, total, partitions_min) for each in whole]
    small = sum(each.size for each, share in zip(whole, shares, strict=True) if share == 1)
    left = max(partitions_min - shares.count(1), 1)
    return [
        part
        for each, share in zip(whole, shares, strict=True)
        for part in _parts(each, 1 if share == 1 else _share(each.size, total - small, left))
    ]


def _share(size: int, total: int, parts: int) -> int:
    # Halves up, as Java rounds.
    return max(math.floor(size / total * parts + 0.5), 1)


def _parts(whole: OffsetRange, count: int) -> list[OffsetRange]:
    cuts = [whole.start + whole.size * number // count for number in range(count + 1)]
    return [OffsetRange(whole.partition, start, end) for start, end in pairwise(cuts) if end > start]


def ration(
    limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return where to end so that there are about `limit` offsets in all; one without a start is left at its end."""
    sizes = {each: end - starts[each] for each, end in ends.items() if each in starts and end > starts[each]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    cut = {each: starts[each] + max(limit * size // total, 1) for each, size in sizes.items()}
    return {**ends, **cut}


def waiting(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """Return how many offsets there are to read; all of them where no start is known."""
    return sum(max(end - starts.get(each, 0), 0) for each, end in ends.items())
