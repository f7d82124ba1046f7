"""The rows of the result: each scenario on each server, the data source `ottla` beside Spark's own connector."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

FORMATS = ("kafka", "ottla")
PRODUCTS = {"kafka": "Apache Kafka", "ottla": "Ottla"}
Rounds = dict[str, dict[str, dict[str, list[float]]]]  # figure, product, format


@dataclass(frozen=True)
class Figure:
    """What is measured; `limit` is how many times as much, or as little, as Spark's own it must be."""

    name: str
    title: str
    unit: str
    limit: float | None = None
    less_is_better: bool = False

    def holds(self, ratio: float) -> bool:
        assert self.limit is not None
        return ratio <= self.limit if self.less_is_better else ratio >= self.limit

    @property
    def required(self) -> str:
        if self.limit is None:
            return ""
        return f"{'≤' if self.less_is_better else '≥'} {self.limit:g} ×"


FIGURES = (
    Figure("read.per_s", "batch read", "records/s", 1.5),
    Figure("read.cpu_us", "… CPU a record", "µs"),
    Figure("stream.per_s", "streaming read", "records/s", 1.2),
    Figure("stream.cpu_us", "… CPU a record", "µs"),
    Figure("write.per_s", "write, exactly once beside at least once", "records/s", 1.0),
    Figure("write.cpu_us", "… CPU a record", "µs"),
    Figure("keyed.per_s", "… with keys", "records/s"),
    Figure("keyed.cpu_us", "… CPU a record", "µs"),
    Figure("copy.per_s", "copy from topic to topic", "records/s"),
    Figure("copy.cpu_us", "… CPU a record", "µs"),
    Figure("delay.p50_ms", "delay of a copy, p50", "ms", 1.0, less_is_better=True),
    Figure("delay.p99_ms", "delay of a copy, p99", "ms", 1.0, less_is_better=True),
    Figure("delay.batch_ms", "… a batch, median", "ms"),
)


@dataclass(frozen=True)
class Row:
    """A figure on one server."""

    figure: Figure
    product: str
    own: float
    ottla: float

    @property
    def ratio(self) -> float:
        return self.ottla / self.own if self.own else 0.0

    @property
    def margin(self) -> float:
        """How many times better than required."""
        assert self.figure.limit is not None
        return (
            self.figure.limit / self.ratio if self.figure.less_is_better else self.ratio / self.figure.limit
        )

    @property
    def verdict(self) -> str:
        if self.figure.limit is None:
            return ""
        return "holds" if self.figure.holds(self.ratio) else "FAILS"


def rows(rounds: Rounds) -> Iterator[Row]:
    """A row for whatever was measured with both."""
    for figure in FIGURES:
        for product, found in rounds.get(figure.name, {}).items():
            if all(found.get(each) for each in FORMATS):
                own, ottla = (statistics.median(found[each]) for each in FORMATS)
                yield Row(figure, product, own, ottla)


def table(found: list[Row]) -> list[str]:
    """A Markdown table, which is readable as it is."""
    heads = ("figure", "server", "unit", "Spark's own", "ottla", "ratio", "required", "verdict")
    cells = [
        (
            row.figure.title,
            PRODUCTS[row.product],
            row.figure.unit,
            _number(row.own),
            _number(row.ottla),
            f"{row.ratio:.2f}",
            row.figure.required,
            row.verdict,
        )
        for row in found
    ]
    widths = [max(len(line[n]) for line in [heads, *cells]) for n in range(len(heads))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in [heads, *cells]
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
