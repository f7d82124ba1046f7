"""Indexes of a segment: offsets, times, and aborted transactions; checked against the batches beside them.

A running or crashed Kafka leaves its indexes filled up with zeros, which are no entries.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from ottla.cli.amount import moment_text
from ottla.cli.dump.batches import read_batches
from ottla.cli.dump.finding import Findings, Found, Problem
from ottla.log.offset_index import OffsetIndex
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import TransactionIndex


class _Batches:
    """What the segment beside an index says: where batches begin, their last offsets, and the greatest time so far."""

    def __init__(self, log: Path) -> None:
        self.last_offsets: dict[int, int] = {}
        self.max_timestamps: dict[int, int] = {}
        greatest = -1
        with log.open("rb") as file:
            for each in read_batches(file, log.stat().st_size):
                if isinstance(each, Problem):
                    return
                position, batch, _ = each
                greatest = max(greatest, batch.max_timestamp)
                self.last_offsets[position] = batch.last_offset
                self.max_timestamps[batch.last_offset] = greatest


def dump_offset_index(path: Path, base_offset: int) -> Findings:
    """Yield every entry, and those that do not fit the segment."""
    batches = _beside(path)
    last = -1
    for number, (relative, position) in _entries(path, OffsetIndex.entry):
        offset = base_offset + relative
        yield Found("entry", {"offset": offset, "position": position})
        if position <= last:
            yield Problem(f"entry {number}: position {position} is not behind {last}")
        last = position
        if batches is not None and batches.last_offsets.get(position) != offset:
            yield Problem(f"entry {number}: no batch that ends with offset {offset} begins at {position}")
    yield from _remainder(path, OffsetIndex.entry)


def dump_time_index(path: Path, base_offset: int) -> Findings:
    """Yield every entry, and those that do not fit the segment."""
    batches = _beside(path)
    last = -1
    for number, (timestamp, relative) in _entries(path, TimeIndex.entry):
        offset = base_offset + relative
        yield Found("entry", {"timestamp": timestamp, "time": moment_text(timestamp), "offset": offset})
        if timestamp <= last:
            yield Problem(f"entry {number}: timestamp {timestamp} is not behind {last}")
        last = timestamp
        if batches is None:
            continue
        greatest = batches.max_timestamps.get(offset)
        if greatest is None:
            # A record's own offset may stand there as well as the last one of its batch.
            greatest = next((each for end, each in batches.max_timestamps.items() if end >= offset), None)
        if greatest != timestamp:
            yield Problem(
                f"entry {number}: the greatest timestamp up to offset {offset} is {greatest}, not {timestamp}"
            )
    yield from _remainder(path, TimeIndex.entry)


def dump_transaction_index(path: Path, base_offset: int) -> Findings:
    """Yield every aborted transaction."""
    last = -1
    for number, (version, producer_id, first_offset, last_offset, stable) in _entries(
        path, TransactionIndex.entry
    ):
        fields = {
            "version": version,
            "producer_id": producer_id,
            "first_offset": first_offset,
            "last_offset": last_offset,
            "last_stable_offset": stable,
        }
        yield Found("aborted", fields)
        if not first_offset < last_offset or last_offset <= last or last_offset < base_offset:
            yield Problem(
                f"entry {number}: a transaction from {first_offset} to {last_offset} cannot be here"
            )
        last = last_offset
    yield from _remainder(path, TransactionIndex.entry)


DUMPS: dict[str, Callable[[Path, int], Findings]] = {
    ".index": dump_offset_index,
    ".timeindex": dump_time_index,
    ".txnindex": dump_transaction_index,
}


def _entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    data = path.read_bytes()
    whole = len(data) - len(data) % entry.size
    # Behind the first, an entry of zeros is room that Kafka has set aside.
    for number, fields in enumerate(entry.iter_unpack(memoryview(data)[:whole])):
        if not any(fields) and not any(data[number * entry.size :]):
            return
        yield number, fields


def _remainder(path: Path, entry: struct.Struct) -> Findings:
    left = path.stat().st_size % entry.size
    if left:
        yield Problem(f"{left} bytes at the end are no entry")


def _beside(path: Path) -> _Batches | None:
    log = path.with_suffix(".log")
    return _Batches(log) if log.is_file() else None
