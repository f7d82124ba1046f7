"""Durations and points in time as programs write them.

A duration is a number of seconds or a timedelta. A point in time is a number of milliseconds since 1970, which is what
Kafka stores in a record, or a datetime.
"""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias, overload

Duration: TypeAlias = float | timedelta
"""Seconds, or a timedelta."""

Time: TypeAlias = int | datetime
"""Milliseconds since 1970, or a datetime. A datetime without a time zone is local time."""


def seconds(duration: Duration) -> float:
    """Return a duration in seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


@overload
def duration_ms(duration: Duration) -> float: ...
@overload
def duration_ms(duration: Duration | None) -> float | None: ...
def duration_ms(duration: Duration | None) -> float | None:
    """Return a duration in milliseconds, and None for None."""
    return None if duration is None else seconds(duration) * 1000


def time_ms(time: Time) -> int:
    """Return a point in time in milliseconds since 1970."""
    return round(time.timestamp() * 1000) if isinstance(time, datetime) else int(time)


def datetime_of(timestamp: int) -> datetime:
    """Return a timestamp in milliseconds since 1970 as a datetime in UTC."""
    return datetime.fromtimestamp(timestamp // 1000, UTC) + timedelta(milliseconds=timestamp % 1000)
