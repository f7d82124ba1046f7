"""Prometheus' text format, version 0.0.4: families of samples, a line each.

A family is written as a whole, since scrapers refuse one that stands in two places, and a family without samples is
left out. Labels are escaped, for topic names and client software names come from outside.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER = "counter"
GAUGE = "gauge"
HISTOGRAM = "histogram"
_LINES_AT_ONCE = 2_000

Number = int | float


class Family:
    """One metric name with all its samples."""

    __slots__ = ("help", "kind", "name", "samples")

    def __init__(self, name: str, kind: str, help: str) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self.samples: list[tuple[str, Number]] = []

    def add(self, value: Number, part: str = "", /, **labels: object) -> "Family":
        """Add a sample; `part` is the end of its name in families that have several, such as `_sum`."""
        self.samples.append((part + label_text(labels) if labels else part, value))
        return self

    def lines(self) -> Iterator[str]:
        """The family as it is written."""
        name = self.name
        yield f"# HELP {name} {self.help}"
        yield f"# TYPE {name} {self.kind}"
        for labels, value in self.samples:
            yield f"{name}{labels} {value if type(value) is int else number_text(value)}"


def counter(name: str, help: str) -> Family:
    """A family of numbers that only grow."""
    return Family(name, COUNTER, help)


def gauge(name: str, help: str) -> Family:
    """A family of numbers that come and go."""
    return Family(name, GAUGE, help)


def histogram(name: str, help: str) -> Family:
    """A family of distributions, whose parts are `_bucket`, `_sum` and `_count`."""
    return Family(name, HISTOGRAM, help)


def label_text(labels: dict[str, object]) -> str:
    """Labels in braces."""
    return "{" + ",".join(f'{name}="{_escape(str(value))}"' for name, value in labels.items()) + "}"


def number_text(value: Number) -> str:
    """A number as Prometheus parses it."""
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def page_pieces(families: Iterable[Family | None]) -> Iterator[bytes]:
    """A page, a family at a time, or a part of one that is long; nothing where None stands, which is a pause."""
    for family in families:
        if family is None:
            yield b""
        elif family.samples:
            lines = family.lines()
            while piece := "".join([f"{line}\n" for line in islice(lines, _LINES_AT_ONCE)]):
                yield piece.encode()


def _escape(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value
