"""The result as a page to read and as JSON to compare."""

import dataclasses
import json
from importlib.metadata import version
from pathlib import Path

from bench import machine
from bench.spark.figures import Rounds, Row, table
from bench.spark.scenes import Sizes
from tests.peers.connector import VERSION

PARTS = ("numpy", "pyarrow", "pyspark")
WORDS = """\
Figures are medians of all rounds in one warm session of Spark, local[2]; formats and servers took turns. Records are
100 bytes in 4 partitions: {read_records:,} are read and copied, streams take {batch_rows:,} a batch, and
{write_records:,} are written. `ottla` reads committed records and writes exactly once, Spark's own connector reads
uncommitted ones and writes at least once. CPU is that of Spark, its workers and the server. The delay is from a
producer's send to a read-committed consumer at {delay_per_second} records a second, each batch
following on the last."""


def write(directory: Path, command: str, sizes: Sizes, found: list[Row], rounds: Rounds) -> None:
    """Leave both in the directory, as spark.md and spark.json."""
    facts = machine.facts() | {name: version(name) for name in PARTS} | {"spark-sql-kafka": VERSION}
    told = ", ".join(f"{name} {fact}" for name, fact in facts.items())
    page = [
        "# The data source `ottla` beside Spark's own Kafka connector",
        "",
        f"Made by `{command}` on: {told}.",
        WORDS.format(**dataclasses.asdict(sizes)),
        "",
        *table(found),
        "",
    ]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spark.md").write_text("\n".join(page))
    document = {
        "command": command,
        "machine": facts,
        "sizes": dataclasses.asdict(sizes),
        "rows": [
            {
                "figure": row.figure.name,
                "unit": row.figure.unit,
                "server": row.product,
                "kafka": row.own,
                "ottla": row.ottla,
                "ratio": row.ratio,
                "required": row.figure.required or None,
                "verdict": row.verdict or None,
            }
            for row in found
        ],
        "rounds": rounds,
    }
    (directory / "spark.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
