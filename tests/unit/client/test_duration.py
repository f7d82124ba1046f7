from datetime import UTC, datetime, timedelta

import pytest

from ottla.client import Record, RecordMetadata
from ottla.client.duration import datetime_of, duration_ms, seconds, time_ms


@pytest.mark.parametrize(
    ("given", "expected"),
    [(2, 2.0), (0.25, 0.25), (timedelta(minutes=1), 60.0), (timedelta(microseconds=1_500), 0.0015)],
)
def test_a_duration_is_seconds_or_a_timedelta(given: float | timedelta, expected: float) -> None:
    assert seconds(given) == expected
    assert duration_ms(given) == expected * 1000
    assert duration_ms(None) is None


def test_a_time_is_milliseconds_or_a_datetime() -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 5_000, tzinfo=UTC)
    assert time_ms(moment) == 1_704_067_200_005
    assert time_ms(17) == 17
    assert datetime_of(1_704_067_200_005) == moment
    assert datetime_of(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert Record("t", 0, 0, 1_704_067_200_005, None, b"").datetime == moment
    assert RecordMetadata("t", 0, 0, 1_704_067_200_005).datetime == moment
