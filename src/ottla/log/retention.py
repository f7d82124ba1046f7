"""Which segments have outlived the topic's retention settings.

Only a prefix ever goes, and nothing at or above the high watermark. A segment goes because all of it lies before the
start offset, because the log is larger than `retention.bytes` without it, or because its youngest record is older
than `retention.ms`; the last two only where the cleanup policy is to delete.
"""

from ottla.log.config import LogConfig
from ottla.log.segment import Segment


def breached(
    segments: list[Segment],
    config: LogConfig,
    now_ms: int,
    high_watermark: int,
    start_offset: int,
    end_offset: int,
) -> int:
    """Return how many of the oldest segments must go. All of them may: the caller then begins a new one first."""
    count = _before_start(segments, high_watermark, start_offset)
    if config.is_deleted:
        count = _oversized(segments, count, config.retention_bytes, high_watermark, end_offset)
        count = _outdated(segments, count, config.retention_ms, now_ms, high_watermark, end_offset)
    return count


def _before_start(segments: list[Segment], high_watermark: int, start_offset: int) -> int:
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= min(start_offset, high_watermark):
        count += 1
    return count


def _may_go(segments: list[Segment], at: int, high_watermark: int, end_offset: int) -> bool:
    """Say whether a segment lies below the high watermark; an empty active one would only be made anew."""
    if at >= len(segments):
        return False
    if at + 1 < len(segments):
        return high_watermark >= segments[at + 1].base_offset
    return high_watermark >= end_offset and segments[at].file.size > 0


def _oversized(
    segments: list[Segment], count: int, retention_bytes: int, high_watermark: int, end_offset: int
) -> int:
    if retention_bytes < 0:
        return count
    excess = sum(segment.file.size for segment in segments[count:]) - retention_bytes
    while _may_go(segments, count, high_watermark, end_offset) and excess - segments[count].file.size >= 0:
        excess -= segments[count].file.size
        count += 1
    return count


def _outdated(
    segments: list[Segment], count: int, retention_ms: int, now_ms: int, high_watermark: int, end_offset: int
) -> int:
    if retention_ms < 0:
        return count
    while (
        _may_go(segments, count, high_watermark, end_offset)
        and now_ms - segments[count].largest_timestamp() > retention_ms
    ):
        count += 1
    return count
