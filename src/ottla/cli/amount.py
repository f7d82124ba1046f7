"""Sizes, durations and moments, as people write and read them.

sizes       1024  10k  1.5MiB  2GB       k, M, G are powers of 1024, as in Kafka's own documentation of settings
durations   250ms  10s  1.5h  1h30m  2d  a bare number is seconds
moments     1760000000000 (ms)  1760000000 (s)  2026-10-09  2026-10-09T08:53:20Z  -1h (ago)  now
"""

import re
from datetime import UTC, datetime

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SECONDS_DIGITS, _MILLISECONDS_DIGITS = 10, 13


def parse_size(text: str) -> int:
    """Return a number of bytes; ValueError says what is wrong."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text} is not a size, as 512, 10k or 1MiB are")
    return round(float(found[1]) * 1024.0 ** _POWERS[found[2].lower()])


def parse_duration(text: str) -> int:
    """Return milliseconds; ValueError says what is wrong."""
    text = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return round(float(text) * 1000)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text} is not a duration, as 500ms, 10s or 1h30m are")
    return round(sum(float(number) * _UNITS_MS[unit] for number, unit in parts))


def parse_moment(text: str, now_ms: int) -> int:
    """Return milliseconds since the epoch; a time without a zone is in UTC. ValueError says what is wrong."""
    text = text.strip()
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - parse_duration(text[1:])
    if text.isascii() and text.isdigit() and len(text) in (_SECONDS_DIGITS, _MILLISECONDS_DIGITS):
        return int(text) * (1000 if len(text) == _SECONDS_DIGITS else 1)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text} is not a time, as 2026-10-09, 2026-10-09T08:53:20Z, 1760000000000 (in ms) or -1h (ago) are"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def moment_text(ms: int) -> str | None:
    """Return a time in UTC, to the millisecond; None for the -1 that stands for no time."""
    if ms < 0:
        return None
    try:
        moment = datetime.fromtimestamp(ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def size_text(size: float) -> str:
    """Return bytes in three digits or so."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def duration_text(seconds: float) -> str:
    """Return a duration in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
