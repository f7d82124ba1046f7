"""Tables: upper-case headings, columns two spaces apart, numbers to the right, nothing but text.

T1  A cell is one line: control characters are shown as escapes, so that what a stranger named cannot steer a terminal.
T2  What a table shows does not depend on where it is printed.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

GAP = "  "
NOTHING = "-"


class Column(NamedTuple):
    """A column: the key of its cells in a row, and the heading, which is the key unless something else is said."""

    key: str
    title: str = ""

    @property
    def heading(self) -> str:
        """The heading as it is printed."""
        return (self.title or self.key.replace("_", " ")).upper()


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column | str]) -> list[str]:
    """Return the lines of a table, headings first."""
    kept = [each if isinstance(each, Column) else Column(each) for each in columns]
    body = list(rows)
    numeric = [
        any(_is_number(row.get(column.key)) for row in body)
        and all(row.get(column.key) is None or _is_number(row.get(column.key)) for row in body)
        for column in kept
    ]
    lines = [[column.heading for column in kept]]
    lines += [[cell(row.get(column.key)) for column in kept] for row in body]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    return [
        GAP.join(
            pad(text, size, right=right) for text, size, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]


def facts(pairs: Mapping[str, Any]) -> list[str]:
    """Return names and values of one thing, a line each."""
    names = {key: key.replace("_", " ") for key in pairs}
    size = max(map(width, names.values()), default=0)
    return [f"{pad(names[key], size)}{GAP}{cell(value)}".rstrip() for key, value in pairs.items()]


def cell(value: Any) -> str:
    """Return a value as people read it."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, Mapping):
        return clean(", ".join(f"{key}={each}" for key, each in value.items())) or NOTHING
    if isinstance(value, list | tuple):
        return clean(",".join(str(each) for each in value)) or NOTHING
    return clean(str(value))


def clean(text: str) -> str:
    """Return text with control characters made visible."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable()
        else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(each)
        or (f"\\x{ord(each):02x}" if ord(each) < 0x100 else f"\\u{ord(each):04x}")
        for each in text
    )


def width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def pad(text: str, size: int, *, right: bool = False) -> str:
    """Return text filled up with spaces to a width, on the left when it belongs to the right."""
    room = " " * (size - width(text))
    return room + text if right else text + room


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
