"""Types of arguments: what argparse calls to read a word, and what it says when the word is none of the kind."""

import argparse
from collections.abc import Callable

PARTITIONS_MAX = 1_000_000


def port(text: str) -> int:
    """Read a port."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535, and 0 for any free one")
    return int(text)


def count(text: str) -> int:
    """Read a number that is at least one."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return int(text)


def natural(text: str) -> int:
    """Read a number that is at least zero."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return int(text)


def rate(text: str) -> float:
    """Read how many of something in a second."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return found


def size(text: str) -> int:
    """Read a number of bytes."""
    from ottla.cli.amount import parse_size

    return _read(parse_size, text)


def duration(text: str) -> int:
    """Read milliseconds."""
    from ottla.cli.amount import parse_duration

    return _read(parse_duration, text)


def partitions(text: str) -> list[int]:
    """Read numbers of partitions: 0,2-4."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        numbers = range(int(first), int(last) + 1) if first.isdecimal() and last.isdecimal() else range(0)
        if not 0 < len(numbers) <= PARTITIONS_MAX:
            raise argparse.ArgumentTypeError(f"{text} does not name partitions, as 0,2-4 does")
        found += numbers
    return found


def _read(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
