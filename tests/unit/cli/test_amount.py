"""Sizes, durations and moments."""

import pytest

from ottla.cli.amount import duration_text, moment_text, parse_duration, parse_moment, parse_size, size_text

NOW = 1_760_000_000_000


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("10k", 10240),
        ("1.5MiB", 1572864),
        ("2GB", 2 << 30),
        ("1 kb", 1024),
        ("1t", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "1x", "1.5.2", "ten"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("2", 2000),
        ("1.5", 1500),
        ("250ms", 250),
        ("1m", 60_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "h", "1x", "1h 30", "-1s", "1h-"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("now", NOW),
        ("-1h", NOW - 3_600_000),
        ("1760000000000", NOW),
        ("1760000000", NOW),
        ("2025-10-09", 1_759_968_000_000),
        ("2025-10-09T08:53:20Z", NOW),
        ("2025-10-09T10:53:20+02:00", NOW),
        ("2025-10-09 08:53:20", NOW),
        ("2025-10-09T08:53:20.123Z", NOW + 123),
    ],
)
def test_moments(text: str, ms: int) -> None:
    assert parse_moment(text, NOW) == ms


@pytest.mark.parametrize("text", ["", "yesterday", "17600", "2025-13-01", "-"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError):
        parse_moment(text, NOW)


def test_how_they_are_printed() -> None:
    assert moment_text(NOW + 7) == "2025-10-09T08:53:20.007Z"
    assert moment_text(-1) is None
    assert moment_text(1 << 62) == str(1 << 62)
    assert [size_text(size) for size in (0, 999, 2048, 5 << 20, 3 << 40)] == [
        "0 B",
        "999 B",
        "2.0 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
    assert [duration_text(each) for each in (0.25, 9.94, 61, 3661)] == ["250 ms", "9.9 s", "1:01", "1:01:01"]
