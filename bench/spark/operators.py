"""Measure each kind of operator of the streams DSL, on Ottla, with state in Spark; and beside an older revision.

    python -m bench.spark operators [NAME …] [--against REVISION] [--records N] [--rounds N] [--quick] [--out FILE]

An app of each kind reads a topic of typed records, keyed JSON, and writes what comes of them exactly once, in local[2].
`--against` says which revision of this repository does the same on the same server: its `src` is laid out and compiled
beside this one, and `PYTHONPATH` leads the driver and Spark's Python processes there (`apps.py` runs on both). The two
take turns, and the order changes from round to round. What is measured is micro-batches, but for the first of each.
"""

import argparse
import importlib.machinery
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import machine
from bench.spark.apps import APPS
from bench.stage import Sizes, Stage
from tests.peers.jars import CHECKOUT

PROGRAM = Path(__file__).with_name("apps.py")
PARTITIONS = 2
USERS, ITEMS = 10_000, 1_000
START_MS, STEP_MS = 1_700_000_000_000, 10
BATCHES = 5
RECORDS, QUICK_RECORDS = 150_000, 5_000
# name → revision → records a second and CPU a record, one for each round
Found = dict[str, dict[str, list[dict[str, float]]]]


def main(words: Sequence[str]) -> int:
    """Measure, and show a table."""
    options = _options(words)
    records = options.records or (QUICK_RECORDS if options.quick else RECORDS)
    CHECKOUT.joinpath(".cache").mkdir(exist_ok=True)
    found: Found = {}
    with tempfile.TemporaryDirectory(dir=options.data or CHECKOUT / ".cache", prefix="bench-") as directory:
        trees = {"now": CHECKOUT / "src"}
        if options.against:
            trees[options.against] = laid_out(options.against, Path(directory) / "older")
        with Stage("ottla", Sizes(), Path(directory)).server() as server:
            counts = fill(server.bootstrap, records)
            for turn in range(options.rounds):
                for revision, tree in list(trees.items())[:: -1 if turn % 2 else 1]:
                    given = {
                        "bootstrap": server.bootstrap,
                        "records": counts,
                        "batches": BATCHES,
                        "directory": directory,
                        "names": options.name or list(APPS),
                        "tree": str(tree),
                        "run": f"{turn}-{revision}",
                    }
                    for each in measured(tree, given):
                        print(f"round {turn + 1} {revision} {each}", file=sys.stderr, flush=True)
                        name = each.pop("name")
                        found.setdefault(name, {}).setdefault(revision, []).append(each)
    print("\n".join(table(found, options.against)))
    if options.out:
        document = {
            "machine": machine.facts(),
            "records": records,
            "against": options.against,
            "rounds": found,
        }
        Path(options.out).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0


def laid_out(revision: str, place: Path) -> Path:
    """Lay out the sources of a revision, compile their C parts as an installation does, and return where they are."""
    words = ["git", "-C", str(CHECKOUT), "archive", revision, "src", "hatch_build.py"]
    data = subprocess.run(words, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(place, filter="data")
    spec = importlib.util.spec_from_file_location("older_build", place / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    build: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    for source in sorted(place.glob(build.SOURCES)):
        failure = build.compile_part(source, source.with_suffix(suffix))
        assert failure is None, f"{source.name} of {revision} was not compiled: {failure}"
    return place / "src"


def fill(bootstrap: str, records: int) -> dict[str, int]:
    """Write the topics that apps read, and return how many records each has."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = ("orders", "visits", "users", "items", "out")
    # Times are given, and long ago.
    forever = {"retention.ms": "-1"}
    made_topics = [NewTopic(each, PARTITIONS, 1, config=forever) for each in topics]
    for made in admin.create_topics(made_topics).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})

    def send(topic: str, number: int, key: str, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        while True:
            try:
                producer.produce(topic, data, key.encode(), timestamp=START_MS + number * STEP_MS)
                return
            except BufferError:
                producer.poll(0.05)

    def order(number: int) -> dict[str, Any]:
        return {
            "user": f"user-{number % USERS}",
            "item": number * 7 % ITEMS,
            "amount": number * 31 % 997 + 0.5,
        }

    users, items = min(USERS, records), min(ITEMS, records)
    for topic, count in (("users", users), ("items", items)):
        for number in range(count):
            key = f"user-{number}" if topic == "users" else str(number)
            send(topic, 0, key, {"name": f"name {number}", "country": f"c{number % 50}"})
    for number in range(records):
        for topic in ("orders", "visits"):
            send(topic, number, f"user-{number % USERS}", order(number))
    assert producer.flush(120) == 0
    return {"orders": records, "visits": records, "users": users, "items": items}


def measured(tree: Path, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Run the apps on a source tree."""
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    words = [sys.executable, str(PROGRAM), json.dumps(given)]
    said = Path(given["directory"]) / "apps.err"
    with said.open("wb") as errors:
        running = subprocess.Popen(
            words, cwd=given["directory"], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            assert running.stdout is not None
            yield from map(json.loads, (line for line in running.stdout if line.startswith("{")))
        finally:
            running.stdout.close()
            code = running.wait()
    if code:
        raise RuntimeError(f"the apps ended with {code}:\n{said.read_text(errors='replace')[-3000:]}")


def table(found: Found, against: str | None) -> list[str]:
    """A Markdown table, which is readable as it is."""
    heads = ["operator", "records/s", "CPU µs a record"]
    if against:
        heads += [f"records/s of {against}", f"CPU µs of {against}", "ratio"]
    cells = [heads]
    for name, revisions in found.items():
        row = [name]
        for each in revisions if against is None else ("now", against):
            rounds = revisions.get(each, [])
            row += [f"{_median(rounds, 'per_s'):,.0f}", f"{_median(rounds, 'cpu_us'):.1f}"]
        if against:
            row.append(f"{_median(revisions['now'], 'per_s') / _median(revisions[against], 'per_s'):.2f}")
        cells.append(row)
    widths = [max(len(row[n]) for row in cells) for n in range(len(heads))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def _median(rounds: list[dict[str, float]], figure: str) -> float:
    return statistics.median(each[figure] for each in rounds)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spark operators",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help=f"which to measure (all): {', '.join(APPS)}")
    parser.add_argument("--against", metavar="REVISION", help="measure this revision as well, in turns")
    parser.add_argument("--records", type=int, help=f"how many orders there are ({RECORDS})")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--out", help="where to write the figures as JSON")
    parser.add_argument("--data", help="where the server and Spark keep their data meanwhile (.cache)")
    options = parser.parse_args(words)
    for name in options.name:
        if name not in APPS:
            parser.error(f"no operator is called {name!r}; there are {', '.join(APPS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
