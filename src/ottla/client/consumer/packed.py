"""Records that stay in their batches until they are asked for, and are made there by compiled code.

K1  Each batch is looked through when it is packed: one that is not sound is not packed, and neither are its neighbours.
K2  What is packed are copies of the batches: nothing of the answer they came in is held.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ottla.client.consumer.chunk import Chunk
from ottla.client.record import Record
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.compression import Buffer

try:
    from ottla.wire import _records
except ImportError:  # no compiler when Ottla was installed
    _records = None  # type: ignore[assignment]


class _Pack(NamedTuple):
    """A batch, and how many records lie in it before the first that is wanted."""

    skip: int
    body: bytes
    base_offset: int
    base_timestamp: int
    append_time_ms: int | None
    after: tuple[Any, ...]  # the last fields of each of its records


def pack(chunk: Chunk, batches: Sequence[Batch], bodies: Sequence[Buffer]) -> "PackedRows | None":
    """Pack batches; None if one is not sound, or nobody is here to make records of them."""
    if _records is None:
        return None
    packs: list[_Pack] = []
    counts: list[int] = []
    start_offset, sound = chunk.start_offset, _records.sound
    for batch, data in zip(batches, bodies, strict=True):
        body = bytes(data)
        base_offset, count = batch.base_offset, batch.record_count
        skip = sound(body, count, start_offset - base_offset)
        if skip < 0:
            return None
        by_broker = batch.attributes & LOG_APPEND_TIME
        append_time_ms = batch.max_timestamp if by_broker else None
        after = (1 if by_broker else 0, batch.partition_leader_epoch, 0)
        packs.append(_Pack(skip, body, base_offset, batch.base_timestamp, append_time_ms, after))
        counts.append(count - skip)
    return PackedRows((chunk.topic, chunk.partition), packs, [*accumulate(counts, initial=0)])


class PackedRows:
    """Records of packed batches; has a length, and makes slices of itself."""

    __slots__ = ("_before", "_packs", "_starts")

    def __init__(self, before: tuple[str, int], packs: Sequence[_Pack], starts: Sequence[int]) -> None:
        """`starts` says how many records lie before each pack, and how many there are in all."""
        self._before = before
        self._packs = packs
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
            skip, body, base_offset, base_timestamp, append_time_ms, after = self._packs[number]
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
