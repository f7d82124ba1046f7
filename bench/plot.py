"""A picture of the required figures: how far each is from its limit, on a scale where the limit is 1."""

from pathlib import Path

import matplotlib as mpl

from bench.rows import ROWS, Medians, Row

mpl.use("svg")
from matplotlib import pyplot

HOLDS, FAILS = "#2a6f97", "#bb3e03"


def draw(medians: Medians, path: Path) -> None:
    """Write the picture of the broker's figures as SVG."""
    drawn = [(row, margin) for row in ROWS if (margin := _margin(row, medians)) is not None]
    bars(
        [(_title(row), margin) for row, margin in drawn],
        "Ottla beside Apache Kafka: each figure relative to its limit",
        path,
    )


def bars(margins: list[tuple[str, float]], title: str, path: Path) -> None:
    """Write figures and how many times better than required they are; bars to the right are better."""
    mpl.rcParams["svg.hashsalt"] = "ottla"  # the same figures give the same file
    mpl.rcParams["svg.fonttype"] = "none"
    figure, axes = pyplot.subplots(figsize=(10, 0.42 * len(margins) + 1.2))
    colours = [HOLDS if margin >= 1 else FAILS for _, margin in margins]
    axes.barh(range(len(margins)), [margin - 1 for _, margin in margins], left=1, color=colours)
    for place, (_, margin) in enumerate(margins):
        word = "holds" if margin >= 1 else "fails"
        axes.annotate(f" {margin:.2f} {word}", (max(margin, 1), place), va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(margins)), [name for name, _ in margins], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("times better than required")
    axes.margins(x=0.2)
    axes.set_title(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _margin(row: Row, medians: Medians) -> float | None:
    found = row.compared(medians)
    if row.rule is None or found is None or found <= 0:
        return None
    return found / row.rule.limit if row.rule.kind == "at least" else row.rule.limit / found


def _title(row: Row) -> str:
    if not row.title.startswith("…"):
        return row.title
    before = ROWS[ROWS.index(row) - 1].title
    return f"{before}: {row.title.removeprefix('… ')}"
