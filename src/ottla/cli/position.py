"""Places in a partition, as `--from`, `--to` and the like name them.

    start, end        where the partition begins and ends now
    stored            what the group has committed
    42                an offset
    +10, -10          ten records after the start, ten before the end
    @2026-10-09, @-1h the first record of that time or later; any moment that `ottla.cli.amount` reads

What a place means in a given partition is worked out by `resolve`, from offsets that somebody else looked up.
"""

import enum
from typing import NamedTuple

from ottla.cli.amount import parse_moment

EXAMPLES = "start, end, 42, +10, -10, @2026-10-09T08:00:00Z or @-1h"
_WORDS = {
    "start": "start", "beginning": "start", "earliest": "start", "oldest": "start",
    "end": "end", "latest": "end", "newest": "end",
    "stored": "stored", "committed": "stored",
}  # fmt: skip


class Anchor(enum.Enum):
    """What a place is counted from."""

    START = "start"
    END = "end"
    STORED = "stored"
    OFFSET = "offset"
    TIME = "time"


class Position(NamedTuple):
    """A place: an anchor, and a number that is an offset, a distance, or milliseconds."""

    anchor: Anchor
    number: int = 0


class Bounds(NamedTuple):
    """What is known of a partition: where it begins and ends, what a group stored, and what a time stands for.

    `at_time` is None when no record is that young.
    """

    start: int
    end: int
    stored: int | None = None
    at_time: int | None = None


def parse_position(text: str, now_ms: int) -> Position:
    """Read a place; ValueError says what is wrong."""
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return Position(Anchor(word))
    if text.startswith("@"):
        return Position(Anchor.TIME, parse_moment(text[1:], now_ms))
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"{text} is not a place in a partition, as {EXAMPLES} are")
    if text.startswith("+"):
        return Position(Anchor.START, int(digits))
    if text.startswith("-"):
        return Position(Anchor.END, -int(digits))
    return Position(Anchor.OFFSET, int(digits))


def resolve(position: Position, bounds: Bounds) -> int:
    """Return the offset that a place means, within the bounds of the partition."""
    return min(max(unbounded(position, bounds), bounds.start), bounds.end)


def unbounded(position: Position, bounds: Bounds) -> int:
    """Return the offset that a place means, wherever the partition begins and ends."""
    if position.anchor is Anchor.START:
        return bounds.start + position.number
    if position.anchor is Anchor.END:
        return bounds.end + position.number
    if position.anchor is Anchor.TIME:
        return bounds.end if bounds.at_time is None else bounds.at_time
    if position.anchor is Anchor.STORED:
        return bounds.start if bounds.stored is None else bounds.stored
    return position.number
