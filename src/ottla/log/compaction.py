"""Compaction of one log: map the dirty part, then rewrite every segment below it with what the map leaves.

N1  Only rolled segments are read, through handles of its own, and only `.cleaned` files are written, so the work may be
    done in a thread while the log is in use.
N2  A replacement is complete and on the device, indexes included, before it is handed out.
N3  A replacement reaches as far as what it replaces: its last batch stays, emptied if need be. So the log does not lose
    its last offset, and loading after a crash knows from the new segment which old ones it stands for.
N4  Work comes in slices of about one read buffer; between two of them it may be paced, or dropped without a trace.

    plan on the loop --compact()--> slices in a thread --Replacement--> `Log.replace_segments` on the loop
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.log import names
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.latest_offsets import LatestOffsets
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.log.sieve import LastBatch, Sieve, marker_type, read_body, walk_body
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, scan
from ottla.wire.errors import ProtocolError
from ottla.world.disk import Disk


class Source(NamedTuple):
    """A segment to be rewritten, as it was when the plan was made."""

    segment: Segment
    base_offset: int
    path: str
    size_bytes: int
    index_bytes: int
    time_index_bytes: int

    @classmethod
    def of(cls, segment: Segment) -> "Source":
        """Take down what a thread may know of a segment."""
        return cls(
            segment,
            segment.base_offset,
            segment.file.path,
            segment.size_bytes,
            segment.offset_index.size_bytes,
            segment.time_index.size_bytes,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What one cleaning may use, and how large a segment it may write."""

    dedupe_bytes: int
    buffer_bytes: int
    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A cleaning of one log, decided on the loop: plain facts, so that no thread needs to ask the log."""

    disk: Disk
    directory: str
    sources: tuple[Source, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...]
    producers: Mapping[int, LastBatch]
    now_ms: int
    delete_retention_ms: int
    limits: Limits


class Replacement(NamedTuple):
    """A finished segment and those whose place it takes."""

    new: Segment
    old: tuple[Segment, ...]


class Slice(NamedTuple):
    """A piece of work that was done; `clean_offset` is known once the log is clean up to there."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    replacement: Replacement | None = None
    clean_offset: int | None = None


def compact(plan: Plan) -> Generator[Slice, None, None]:
    """Do a plan slice by slice; each replacement must be installed before the next slice is asked for."""
    latest = LatestOffsets(plan.limits.dedupe_bytes, plan.start_offset)
    yield from _map_dirty(plan, latest)
    sieve = Sieve(
        latest,
        CleanedTransactions(plan.aborted),
        plan.producers,
        now_ms=plan.now_ms,
        delete_retention_ms=plan.delete_retention_ms,
    )
    reached = [source for source in plan.sources if source.base_offset < latest.end_offset]
    for group in group_sources(reached, plan.limits, plan.end_offset):
        yield from _rewrite(plan, group, sieve)
    yield Slice(clean_offset=latest.end_offset)


def _map_dirty(plan: Plan, latest: LatestOffsets) -> Iterator[Slice]:
    start_offset = plan.start_offset
    transactions = CleanedTransactions(txn for txn in plan.aborted if txn.last_offset >= start_offset)
    ends = [source.base_offset for source in plan.sources[1:]] + [plan.end_offset]
    for source, source_end in zip(plan.sources, ends, strict=True):
        if source_end <= start_offset:
            continue
        for data, batches in _chunks(plan, source):
            records_read = 0
            for pos, batch in batches:
                if latest.is_full:
                    return
                if batch.end_offset <= start_offset:
                    continue
                records_read += batch.record_count
                _map_batch(data, pos, batch, start_offset, latest, transactions)
                latest.end_offset = batch.end_offset
            yield Slice(bytes_read=len(data), records_read=records_read)
        # Offsets that no batch has any more count as covered.
        latest.end_offset = source_end


def _map_batch(
    data: bytes,
    pos: int,
    batch: Batch,
    start_offset: int,
    latest: LatestOffsets,
    transactions: CleanedTransactions,
) -> None:
    if batch.is_control:
        transactions.on_marker(batch, marker_type(data, pos, batch))
    elif not transactions.on_data(batch):
        base_offset = batch.base_offset
        for _, _, _, _, delta, key, _ in walk_body(read_body(data, pos, batch), batch):
            if key is not None and base_offset + delta >= start_offset:
                latest.put(key, base_offset + delta)


def _rewrite(plan: Plan, group: Sequence[Source], sieve: Sieve) -> Iterator[Slice]:
    disk, interval_bytes = plan.disk, plan.limits.index_interval_bytes
    cleaned = Segment.create(disk, plan.directory, group[0].base_offset, names.CLEANED)
    left = sum(source.size_bytes for source in group)
    try:
        for source in group:
            for data, batches in _chunks(plan, source):
                records_read, records_kept = sieve.records_read, sieve.records_kept
                left -= len(data)
                last = batches[-1][0] if left == 0 else -1
                parts = (sieve.sift(data, pos, batch, is_last=pos == last) for pos, batch in batches)
                out = b"".join(part for part in parts if part is not None)
                if out:
                    cleaned.append(out, interval_bytes)
                yield Slice(
                    len(data),
                    len(out),
                    sieve.records_read - records_read,
                    sieve.records_kept - records_kept,
                )
        for aborted in sieve.transactions.kept:
            cleaned.transaction_index.append(aborted)
        sieve.transactions.kept.clear()
        cleaned.retire()
        for path in cleaned.paths():
            file = disk.open(path, size=0)
            file.sync()
            file.close()
        disk.set_modified_ms(cleaned.file.path, disk.modified_ms(group[-1].path))
    except BaseException:
        # A closed generator comes this way too: whatever stops the work leaves nothing behind.
        cleaned.remove()
        raise
    cleaned.rest()
    yield Slice(replacement=Replacement(cleaned, tuple(source.segment for source in group)))


def _chunks(plan: Plan, source: Source) -> Iterator[tuple[bytes, list[tuple[int, Batch]]]]:
    """Read a segment front to back, a buffer of whole batches at a time."""
    file = plan.disk.open(source.path, create=False)
    try:
        position = 0
        want = plan.limits.buffer_bytes
        while position < source.size_bytes:
            want = min(want, source.size_bytes - position)
            data = file.read(position, want)
            if len(data) < want:
                raise OSError(f"{source.path} is shorter than when its cleaning was planned")
            batches = list(scan(data))
            if batches:
                last, batch = batches[-1]
                yield data[: last + batch.size], batches
                position += last + batch.size
                want = plan.limits.buffer_bytes
                continue
            want = Batch.parse(data).size if len(data) >= BATCH_HEADER_SIZE else BATCH_HEADER_SIZE
            if want <= len(data) or want > source.size_bytes - position:
                raise ProtocolError(f"{source.path} holds no whole batch at position {position}")
    finally:
        file.close()


def group_sources(sources: Sequence[Source], limits: Limits, end_offset: int) -> list[list[Source]]:
    """Put neighbours together whose bytes, index entries and offsets fit into one segment."""
    groups: list[list[Source]] = []
    size = index_size = time_index_size = 0
    for place, source in enumerate(sources):
        following = sources[place + 1].base_offset if place + 1 < len(sources) else end_offset
        size += source.size_bytes
        index_size += source.index_bytes
        time_index_size += source.time_index_bytes
        if (
            groups
            and size <= limits.segment_bytes
            and index_size <= limits.index_bytes
            and time_index_size <= limits.index_bytes
            # An empty segment brings no offsets, and would otherwise stay for ever beside a great gap.
            and (source.size_bytes == 0 or following - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            groups[-1].append(source)
            continue
        groups.append([source])
        size, index_size, time_index_size = source.size_bytes, source.index_bytes, source.time_index_bytes
    return groups
