"""Where a share group begins in a partition that it has never read: what share.auto.offset.reset says."""

import re

from ottla.log.log import Log
from ottla.log.lookup import UnreadableBatchError
from ottla.partition.partition import Partition

_BATCH_BYTES_MAX = 1 << 20
_BATCHES_MAX = 8
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE)


def reset_offset(partition: Partition, wish: str, now: int) -> int:
    """Return the offset: of the first record, behind the last, or of the first that is not older than a duration."""
    log = partition.log
    if wish == "earliest":
        return log.start_offset
    end_offset = partition.high_watermark
    if wish == "latest":
        return end_offset
    try:
        offset = _offset_by_time(log, now - duration_ms(wish.partition(":")[2]))
    except OSError as error:
        refused = log.storage_error(error)
        raise refused from error
    return end_offset if offset is None else min(offset, end_offset)


def _offset_by_time(log: Log, timestamp: int) -> int | None:
    """Return the first record that is not older, or the beginning of its batch if that is too much for the loop."""
    candidate = log.whole_candidate(timestamp)
    for _ in range(_BATCHES_MAX):
        if candidate is None:
            return None
        try:
            found = candidate.search(_BATCH_BYTES_MAX)
        except UnreadableBatchError:
            break
        if found is not None:
            return found.offset
        candidate = log.whole_candidate(timestamp, candidate.end_offset)
    return None if candidate is None else max(candidate.header[0], log.start_offset)


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration as ISO 8601 writes it: days, hours, minutes, seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction = (found.group(5) or "").ljust(3, "0")[:3]
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int(fraction)
