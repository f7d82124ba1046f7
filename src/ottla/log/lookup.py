"""Finding records by time, and aborted transactions by offset: the questions that look into more than one segment."""

from bisect import bisect_right
from typing import NamedTuple

from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.log.validation import DECOMPRESSED_BYTES_MAX
from ottla.wire.batch import LOG_OVERHEAD, read_records


class Found(NamedTuple):
    """A record found by time; the leader epoch is None when its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int | None


def offset_for_timestamp(segments: list[Segment], timestamp: int, start_offset: int) -> Found | None:
    """Return the first record at or above `start_offset` whose timestamp is not below `timestamp`.

    Only the first segment that is young enough is searched, as in Kafka; records before the start offset do not count.
    """
    for segment in segments:
        if segment.largest_timestamp() >= timestamp:
            return _first_not_older(segment, timestamp, start_offset)
    return None


def _first_not_older(segment: Segment, timestamp: int, start_offset: int) -> Found | None:
    segment.ensure_indexed()
    offset = max(segment.time_index.offset_before(timestamp), start_offset)
    for position, header in segment.headers(segment.offset_index.position_at_or_before(offset)):
        if header[8] >= timestamp:
            batch = segment.file.read(position, header[1] + LOG_OVERHEAD)
            for record in read_records(batch, size_bytes_max=DECOMPRESSED_BYTES_MAX):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return Found(record.timestamp, record.offset, header[2] if header[2] >= 0 else None)
    return None


def max_timestamp(segments: list[Segment]) -> Found | None:
    """Return the first record that has the greatest timestamp of all segments."""
    newest = segments[0]
    for segment in segments[1:]:
        if segment.load_max_timestamp() > newest.load_max_timestamp():
            newest = segment
    timestamp = newest.load_max_timestamp()
    newest.ensure_indexed()
    for position, header in newest.headers(
        newest.offset_index.position_at_or_before(newest.max_timestamp_offset)
    ):
        if header[8] == timestamp:
            batch = newest.file.read(position, header[1] + LOG_OVERHEAD)
            for record in read_records(batch, size_bytes_max=DECOMPRESSED_BYTES_MAX):
                if record.timestamp == timestamp:
                    return Found(timestamp, record.offset, header[2] if header[2] >= 0 else None)
            return None
    return None


def aborted_transactions(
    segments: list[Segment], bases: list[int], start_offset: int, end_offset: int
) -> list[tuple[int, int]]:
    """Return producer and first offset of aborted transactions that touch `[start_offset, end_offset)`, by marker."""
    found = list[AbortedTransaction]()
    for at in range(max(bisect_right(bases, start_offset) - 1, 0), len(segments)):
        index = segments[at].transaction_index
        if (index.count or index.torn) and index.collect(start_offset, end_offset, found):
            break
    return [(each.producer_id, each.first_offset) for each in found] if found else []
