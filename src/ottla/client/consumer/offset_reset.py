"""auto.offset.reset: where a partition without a position begins."""

import re
from typing import NamedTuple

from ottla.metadata.settings.error import InvalidValue

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2

# Java's Duration.parse: days, then hours, minutes and seconds behind a T; each part may have a sign of its own.
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


class AutoOffsetReset(NamedTuple):
    """A reset policy: a timestamp that stands for an end, or a duration before now."""

    name: str
    timestamp: int | None = None
    duration_ms: int | None = None

    def timestamp_at(self, now_ms: int) -> int | None:
        """Return the timestamp for ListOffsets, or None for the policy none."""
        return self.timestamp if self.duration_ms is None else max(now_ms - self.duration_ms, 0)


EARLIEST = AutoOffsetReset("earliest", EARLIEST_TIMESTAMP)
LATEST = AutoOffsetReset("latest", LATEST_TIMESTAMP)
NONE = AutoOffsetReset("none")


def parse_reset(text: str) -> AutoOffsetReset:
    """Read a value of auto.offset.reset."""
    for each in (EARLIEST, LATEST, NONE):
        if text == each.name:
            return each
    kind, colon, duration = text.partition(":")
    milliseconds = _milliseconds(duration) if kind == "by_duration" and colon else None
    if milliseconds is None or milliseconds < 0:
        raise InvalidValue(
            "auto.offset.reset",
            text,
            "must be earliest, latest, none, or by_duration: with an ISO 8601 duration that is not negative",
            "[latest, earliest, none, by_duration:PnDTnHnMn.nS]",
        )
    return AutoOffsetReset(text, duration_ms=milliseconds)


def _milliseconds(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign, days, clock, hours, minutes, seconds, fraction = found.groups()
    if (days is None and clock is None) or (clock is not None and len(clock) == 1):
        return None
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(seconds or 0)
    part = int((fraction or "").ljust(3, "0")[:3] or 0)
    total = whole * 1_000 + (-part if (seconds or "").startswith("-") else part)
    return -total if sign == "-" else total
