"""The result as a page to read, as a picture, and as JSON to compare."""

import dataclasses
import json
from importlib.metadata import version
from pathlib import Path

from bench import machine
from bench.plot import bars
from bench.spark.figures import PRODUCTS, Rounds, Row, rows, table
from bench.spark.scenes import Sizes
from tests.peers.connector import VERSION

PARTS = ("numpy", "pyarrow", "pyspark")
WORDS = """\
Figures are medians of all rounds in one warm session of Spark, local[2]; formats and servers took turns. Records are
100 bytes in 4 partitions: {read_records:,} are read and copied, streams take {batch_rows:,} a batch, and
{write_records:,} are written, after a few unmeasured ones. `ottla` reads committed records and writes exactly once,
Spark's own connector reads uncommitted ones and writes at least once. CPU is that of Spark, its workers and the server.
The delay is from a producer's send to a read-committed consumer at {delay_per_second} records a second, each batch
following on the last."""


def write(directory: Path, command: str, sizes: Sizes, rounds: Rounds) -> None:
    """Leave all three in the directory, as spark.md, spark.svg and spark.json.

    A run may be of some scenarios only; the figures of others stay, if machine and sizes are still the same.
    """
    facts = machine.facts() | {name: version(name) for name in PARTS} | {"spark-sql-kafka": VERSION}
    same = {"machine": facts, "sizes": dataclasses.asdict(sizes)}
    directory.mkdir(parents=True, exist_ok=True)
    made, whole = _before(directory / "spark.json", same)
    made |= dict.fromkeys(rounds, command)
    whole |= rounds
    found = list(rows(whole))
    commands = " and ".join(f"`{each}`" for each in dict.fromkeys(made[row.figure.name] for row in found))
    page = [
        "# The data source `ottla` beside Spark's own Kafka connector",
        "",
        f"Made by {commands} on: {', '.join(f'{name} {fact}' for name, fact in facts.items())}.",
        WORDS.format(**dataclasses.asdict(sizes)),
        "",
        *table(found),
        "",
        "![Each required figure relative to its limit](spark.svg)",
        "",
    ]
    (directory / "spark.md").write_text("\n".join(page))
    required = [row for row in found if row.figure.limit is not None]
    bars(
        [(f"{row.figure.title}, on {PRODUCTS[row.product]}", row.margin) for row in required],
        "The data source ottla beside Spark's own connector: each figure relative to its limit",
        directory / "spark.svg",
    )
    document = same | {"made": made, "rows": [_told(row) for row in found], "rounds": whole}
    (directory / "spark.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _before(path: Path, same: dict[str, object]) -> tuple[dict[str, str], Rounds]:
    """Which command made which figures of an earlier run on the same machine, and what it measured."""
    if not path.exists():
        return {}, {}
    document = json.loads(path.read_text())
    # As JSON has them: numbers and texts, and nothing else.
    if any(document.get(name) != json.loads(json.dumps(each)) for name, each in same.items()):
        return {}, {}
    return document["made"], document["rounds"]


def _told(row: Row) -> dict[str, object]:
    return {
        "figure": row.figure.name,
        "unit": row.figure.unit,
        "server": row.product,
        "kafka": row.own,
        "ottla": row.ottla,
        "ratio": row.ratio,
        "required": row.figure.required or None,
        "verdict": row.verdict or None,
    }
