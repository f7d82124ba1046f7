"""Places in a partition."""

import pytest

from ottla.cli.position import Anchor, Bounds, Position, parse_position, resolve

NOW = 1_760_000_000_000
BOUNDS = Bounds(start=10, end=100, stored=40, at_time=55)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("start", 10),
        ("earliest", 10),
        ("end", 100),
        ("Latest", 100),
        ("stored", 40),
        ("42", 42),
        ("+5", 15),
        ("-5", 95),
        ("@-1h", 55),
        ("@2025-10-09", 55),
        # Nothing lies outside the partition.
        ("3", 10),
        ("1000", 100),
        ("+1000", 100),
        ("-1000", 10),
    ],
)
def test_places(text: str, offset: int) -> None:
    assert resolve(parse_position(text, NOW), BOUNDS) == offset


def test_what_nobody_stored_is_the_start() -> None:
    assert resolve(Position(Anchor.STORED), BOUNDS._replace(stored=None)) == 10


def test_a_time_after_all_records_is_the_end() -> None:
    assert resolve(Position(Anchor.TIME, NOW), BOUNDS._replace(at_time=None)) == 100


@pytest.mark.parametrize("text", ["", "begin", "+", "-", "1.5", "--5", "@", "@later", "+-5"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError):
        parse_position(text, NOW)
