"""Measure Ottla's client beside aiokafka, kafka-python and, for scale, confluent-kafka, on one Ottla broker.

    python -m bench.client [--rounds N] [--records N] [--quick] [--product ottla|kafka] [--out DIRECTORY]

Each figure is taken in a process of its own; the clients take turns, and the order changes from round to round. Those
of asyncio run on uvloop. The result goes to docs/benchmarks as client.md and client.json.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine
from bench.client import arrow, consume
from bench.stage import Sizes, Stage
from tests.peers.jars import CHECKOUT

CLIENTS = ("ottla", "aiokafka", "kafka-python", "confluent")
RIVALS = ("aiokafka", "kafka-python")
TASKS = [
    ("produce", 100, CLIENTS, "per_s", "produce 100 B"),
    ("produce", 1_000, CLIENTS, "per_s", "produce 1 KB"),
    ("consume", 100, CLIENTS, "per_s", "consume 100 B, as objects"),
    ("consume", 1_000, CLIENTS, "per_s", "consume 1 KB, as objects"),
    ("arrow", 100, ("ottla", "confluent"), "per_s", "consume 100 B into Arrow"),
    ("arrow", 1_000, ("ottla", "confluent"), "per_s", "consume 1 KB into Arrow"),
    ("reply", 100, CLIENTS, "p50_us", "one record and its answer, p50"),
]
UNITS = {"per_s": "records/s", "p50_us": "µs", "p99_us": "µs", "cpu_us": "µs", "memory_mb": "MB"}
Found = dict[tuple[str, int, str], dict[str, list[float]]]


def main() -> int:
    options = _options()
    count = 5_000 if options.quick else options.records
    found: Found = {}
    with (
        tempfile.TemporaryDirectory() as place,
        Stage(options.product, Sizes(), Path(place)).server() as server,
    ):
        for size in (100, 1_000):
            consume.fill(server.bootstrap, f"consume-{size}", size, count)
            arrow.fill(server.bootstrap, f"arrow-{size}", arrow.content(size, count, ()))
            arrow.compare(server.bootstrap, f"arrow-{size}", count)
        for turn in range(options.rounds):
            for task, size, clients, _, _ in TASKS:
                for client in clients[:: -1 if turn % 2 else 1]:
                    figures = _play(server.bootstrap, task, client, size, count)
                    for name, figure in figures.items():
                        found.setdefault((task, size, client), {}).setdefault(name, []).append(figure)
    lines, failed = _table(found)
    print("\n".join(lines))
    if not options.quick:
        _write(Path(options.out or CHECKOUT / "docs" / "benchmarks"), options, lines, found)
    return 1 if failed else 0


def _play(bootstrap: str, task: str, client: str, size: int, count: int) -> dict[str, float]:
    count = max(count // 100, 100) if task == "reply" else count
    words = [task, client, bootstrap, f"{task}-{size}", str(size), str(count)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.client.task", *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    told = ", ".join(f"{name} {figure:.4g}" for name, figure in figures.items())
    print(f"{task} {size} B {client}: {told}", file=sys.stderr, flush=True)
    return figures


def _table(found: Found) -> tuple[list[str], bool]:
    failed = False
    rows = [("figure", "unit", *CLIENTS, "ratio", "required", "verdict")]
    for task, size, clients, name, title in TASKS:
        medians = {each: statistics.median(found[task, size, each][name]) for each in clients}
        cells = tuple(f"{medians[each]:,.0f}" if each in medians else "" for each in CLIENTS)
        ratio, limit = _ratio(task, medians)
        verdict = ("holds" if ratio >= limit else "FAILS") if limit else ""
        failed |= verdict == "FAILS"
        rows.append((title, UNITS[name], *cells, f"{ratio:.2f}", f"≥ {limit:g} ×" if limit else "", verdict))
        for extra in ("cpu_us", "memory_mb"):
            if extra in found[task, size, clients[0]]:
                told = {each: statistics.median(found[task, size, each][extra]) for each in clients}
                cells = tuple(f"{told[each]:.3g}" if each in told else "" for each in CLIENTS)
                what = "CPU a record" if extra == "cpu_us" else "memory at most"
                rows.append((f"… {what}", UNITS[extra], *cells, "", "", ""))
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines, failed


def _ratio(task: str, medians: dict[str, float]) -> tuple[float, float]:
    """How many times better than whom it is compared with, and how many it must be."""
    if task == "arrow":
        return medians["ottla"] / medians["confluent"], 1.0
    if task == "reply":
        return min(medians[each] for each in RIVALS) / medians["ottla"], 0.0
    return medians["ottla"] / max(medians[each] for each in RIVALS), 2.0


def _write(directory: Path, options: argparse.Namespace, lines: list[str], found: Found) -> None:
    words = f"python -m bench.client --rounds {options.rounds} --records {options.records}"
    words += "" if options.product == "ottla" else f" --product {options.product}"
    facts = machine.facts()
    told = ", ".join(f"{name} {fact}" for name, fact in facts.items())
    page = [
        "# Ottla's client beside others",
        "",
        f"Made by `{words}` on: {told}.",
        "Figures are medians of all rounds; the clients took turns. Ratios are to the better of aiokafka and "
        "kafka-python, and for Arrow to confluent-kafka's `consume()` made into the same table.",
        "",
        *lines,
        "",
    ]
    (directory / "client.md").write_text("\n".join(page))
    rounds = {f"{task} {size} {client}": figures for (task, size, client), figures in found.items()}
    document = {"command": words, "machine": facts, "rounds": rounds}
    (directory / "client.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--product", default="ottla", choices=("ottla", "kafka"))
    parser.add_argument("--out", help="where to write the table and the JSON (docs/benchmarks)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
