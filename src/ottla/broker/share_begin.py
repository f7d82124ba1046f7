"""Where a share group begins in a partition that it has never read: what share.auto.offset.reset says."""

import re

from ottla.partition.partition import Partition

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
        found = log.offset_for_timestamp(now - duration_ms(wish.partition(":")[2]))
    except OSError as error:
        refused = log.storage_error(error)
        raise refused from error
    return end_offset if found is None or found.offset > end_offset else found.offset


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration as ISO 8601 writes it: days, hours, minutes, seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction = (found.group(5) or "").ljust(3, "0")[:3]
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int(fraction)
