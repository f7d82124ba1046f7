"""Records that stay encoded in their batches until compiled code makes objects of them.

K1  Each batch is checked first. If one is invalid, none is packed.
K2  The batches are copied, so that the response can be freed.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.record import Record
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.compression import Buffer

try:
    from ottla.wire import _records
except ImportError:  # no compiler when Ottla was installed
    _records = None  # type: ignore[assignment]


class _PackedBatch(NamedTuple):
    """A batch, and the number of its records to skip."""

    skip: int
    body: bytes
    base_offset: int
    base_timestamp: int
    append_time_ms: int | None
    after: tuple[Any, ...]  # the last fields of each of its records


def pack_records(
    fetched: FetchedBatches, batches: Sequence[Batch], bodies: Sequence[Buffer]
) -> "PackedRecords | None":
    """Pack batches. Returns None if one is invalid, or without the compiled code."""
    if _records is None:
        return None
    packed_batches: list[_PackedBatch] = []
    counts: list[int] = []
    start_offset, sound = fetched.start_offset, _records.sound
    for batch, data in zip(batches, bodies, strict=True):
        body = bytes(data)
        base_offset, count = batch.base_offset, batch.record_count
        skip = sound(body, count, start_offset - base_offset)
        if skip < 0:
            return None
        by_broker = batch.attributes & LOG_APPEND_TIME
        append_time_ms = batch.max_timestamp if by_broker else None
        after = (1 if by_broker else 0, batch.partition_leader_epoch, 0)
        packed_batches.append(
            _PackedBatch(skip, body, base_offset, batch.base_timestamp, append_time_ms, after)
        )
        counts.append(count - skip)
    return PackedRecords((fetched.topic, fetched.partition), packed_batches, [*accumulate(counts, initial=0)])


class PackedRecords:
    """The records of packed batches. Slices make the objects."""

    __slots__ = ("_before", "_packed_batches", "_starts")

    def __init__(
        self, before: tuple[str, int], packed_batches: Sequence[_PackedBatch], starts: Sequence[int]
    ) -> None:
        """`starts` says how many records lie before each pack, and how many there are in all."""
        self._before = before
        self._packed_batches = packed_batches
        self._starts = starts

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, wanted: slice) -> list[Record]:
        start, stop, _ = wanted.indices(len(self))
        found: list[Record] = []
        if start >= stop:
            return found
        starts, before, make = self._starts, self._before, _records.make
        number = bisect_right(starts, start) - 1
        while start < stop:
            skip, body, base_offset, base_timestamp, append_time_ms, after = self._packed_batches[number]
            first = starts[number]
            number += 1
            end = min(stop, starts[number])
            make(
                found,
                Record,
                before,
                after,
                body,
                skip + start - first,
                end - start,
                base_offset,
                base_timestamp,
                append_time_ms,
            )
            start = end
        return found
