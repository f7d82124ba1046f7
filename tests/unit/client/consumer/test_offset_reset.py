"""Where to begin: the words of auto.offset.reset, and durations as Java reads them."""

import pytest

from ottla.client.consumer.offset_reset import EARLIEST, LATEST, NONE, parse_reset
from ottla.metadata.settings.error import InvalidValue

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(("word", "reset"), [("earliest", EARLIEST), ("latest", LATEST), ("none", NONE)])
def test_words(word, reset):
    assert parse_reset(word) is reset


def test_the_ends_are_asked_for_by_their_numbers():
    assert (EARLIEST.timestamp_at(5), LATEST.timestamp_at(5), NONE.timestamp_at(5)) == (-2, -1, None)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P1D", DAY),
        ("PT1H", HOUR),
        ("PT1H30M", HOUR + 30 * MINUTE),
        ("P2DT3H4M5.678S", 2 * DAY + 3 * HOUR + 4 * MINUTE + 5_678),
        ("PT0.5S", 500),
        ("PT90S", 90 * SECOND),
        ("pt15m", 15 * MINUTE),
        ("PT0S", 0),
        ("P1DT-1H", DAY - HOUR),
        ("-PT-5S", 5 * SECOND),
    ],
)
def test_durations(text, milliseconds):
    assert parse_reset(f"by_duration:{text}").timestamp_at(10 * DAY) == 10 * DAY - milliseconds


def test_no_moment_lies_before_the_beginning_of_time():
    assert parse_reset("by_duration:P10D").timestamp_at(DAY) == 0


@pytest.mark.parametrize(
    "text",
    ["", "Latest", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1h",
     "by_duration:P1DT", "by_duration:-PT1S", "by_duration:PT-1S", "by_duration:P1H", "sometimes:PT1S"],
)  # fmt: skip
def test_what_is_none_of_them(text):
    with pytest.raises(InvalidValue):
        parse_reset(text)
