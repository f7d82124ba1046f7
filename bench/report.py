"""The result in three forms: a table to read, JSON to compare, and a plot to look at."""

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from bench.rows import ROWS, Medians, Row


@dataclass
class Result:
    """Every figure of every round, with what is needed to take it again."""

    command: str
    machine: dict[str, str]
    sizes: dict[str, int]
    rounds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    name: str = "broker"
    made: dict[str, str] = field(default_factory=dict)  # by which command each figure was, if by another one

    def add(self, product: str, figures: dict[str, float]) -> None:
        for name, figure in figures.items():
            self.rounds.setdefault(product, {}).setdefault(name, []).append(figure)

    def medians(self) -> Medians:
        return {
            product: {name: statistics.median(figures) for name, figures in found.items()}
            for product, found in self.rounds.items()
        }

    def write(self, directory: Path) -> None:
        """Leave a page, the figures as JSON and a picture in the directory, under the name of the result.

        A run may be of some scenarios only; the figures of others stay, if machine and sizes are still the same.
        """
        from bench.plot import draw  # loads matplotlib, which a run that writes nothing can do without

        directory.mkdir(parents=True, exist_ok=True)
        self.keep(directory / f"{self.name}.json")
        medians = self.medians()
        (directory / f"{self.name}.json").write_text(
            json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"
        )
        (directory / f"{self.name}.md").write_text(self.page())
        draw(medians, directory / f"{self.name}.svg")

    def keep(self, path: Path) -> None:
        """Take over what an earlier run has measured and this one has not."""
        before = json.loads(path.read_text()) if path.exists() else {}
        if before.get("machine") != self.machine or before.get("sizes") != self.sizes:
            return
        for product, found in before["rounds"].items():
            own = self.rounds.setdefault(product, {})
            for figure, rounds in found.items():
                if figure not in own:
                    own[figure] = rounds
                    self.made[figure] = before.get("made", {}).get(figure, before["command"])

    def document(self) -> dict[str, object]:
        medians = self.medians()
        rows = [
            {
                "figure": row.figure,
                "unit": row.unit,
                "ottla": medians.get("ottla", {}).get(row.figure),
                "kafka": medians.get("kafka", {}).get(row.figure),
                "compared": row.compared(medians),
                "required": str(row.rule) if row.rule else None,
                "against": row.rule.against if row.rule else None,
                "verdict": row.verdict(medians) or None,
            }
            for row in ROWS
            if row.figure in medians.get("ottla", {}) or row.figure in medians.get("kafka", {})
        ]
        return {
            "command": self.command,
            "made": self.made,
            "machine": self.machine,
            "sizes": self.sizes,
            "rows": rows,
            "rounds": self.rounds,
        }

    def page(self) -> str:
        facts = ", ".join(f"{name} {fact}" for name, fact in self.machine.items())
        commands = " and ".join(f"`{each}`" for each in dict.fromkeys([*self.made.values(), self.command]))
        lines = [
            "# Ottla beside Apache Kafka",
            "",
            f"Made by {commands} on: {facts}.",
            "Figures are medians of all rounds; the two took turns. MB are 10⁶ bytes of record values.",
            "",
            f"![Each required figure relative to its limit]({self.name}.svg)",
            "",
            *self.table(),
            "",
        ]
        return "\n".join(lines)

    def table(self) -> list[str]:
        """The rows as a Markdown table, which is readable as it is."""
        medians = self.medians()
        shown = [
            _cells(row, medians) for row in ROWS if any(row.figure in found for found in medians.values())
        ]
        heads = ("figure", "unit", "Ottla", "Kafka", "ratio", "required", "verdict")
        widths = [max(len(line[n]) for line in [heads, *shown]) for n in range(len(heads))]
        lines = [_line(heads, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
        return lines + [_line(cells, widths) for cells in shown]


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _cells(row: Row, medians: Medians) -> tuple[str, ...]:
    ottla, kafka = medians.get("ottla", {}).get(row.figure), medians.get("kafka", {}).get(row.figure)
    compared = row.compared(medians)
    ratio = "" if compared is None or (row.rule and row.rule.against == "itself") else f"{compared:.2f}"
    if row.rule and row.rule.against not in {"kafka", "itself"}:
        ratio = f"{ratio} of the row above" if ratio else ""
    required = str(row.rule) if row.rule else ""
    return (row.title, row.unit, _number(ottla), _number(kafka), ratio, required, row.verdict(medians))


def _number(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
