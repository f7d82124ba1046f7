"""Measure three nodes of Ottla beside three of Apache Kafka.

    python -m bench.cluster [SCENARIO …] [--rounds N] [--quick] [--only ottla|kafka] [--out DIRECTORY] [--name NAME]

The two products take turns, and the order changes from round to round. The result goes to docs/benchmarks as
cluster.md, cluster.json and cluster.svg, or with --quick, whose figures mean nothing, only to the screen.
"""

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import machine
from bench.cluster.failover import failover, rolling
from bench.cluster.stage import QUICK, ClusterStage, Sizes
from bench.cluster.work import durable, work
from bench.report import Result
from bench.rows import ROWS
from tests.peers import jars
from tests.peers.jars import CHECKOUT

SCENARIOS: dict[str, Callable[[ClusterStage], dict[str, float]]] = {
    "work": work,
    "durable": durable,
    "failover": failover,
    "rolling": rolling,
}
# Kafka has no other way with the disk: its figures of `work` stand for both.
OTTLA_ALONE = frozenset({"durable"})


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else Sizes()
    result = Result(_command(options), machine.facts(), dataclasses.asdict(sizes), name=options.name)
    CHECKOUT.joinpath(".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data or CHECKOUT / ".cache", prefix="bench-") as directory:
        for turn in range(options.rounds):
            for name in options.scenario or SCENARIOS:
                for product in _products(options.only, turn):
                    if product != "kafka" or name not in OTTLA_ALONE:
                        _play(result, name, ClusterStage(product, sizes, Path(directory)), turn)
    print("\n".join(result.table()))
    out = options.out or (None if options.quick else CHECKOUT / "docs" / "benchmarks")
    if out is not None:
        result.write(Path(out))
    medians = result.medians()
    return 1 if any(row.verdict(medians) == "FAILS" for row in ROWS) else 0


def _play(result: Result, name: str, stage: ClusterStage, turn: int) -> None:
    began = time.monotonic()
    figures = SCENARIOS[name](stage)
    if stage.product == "kafka" and name == "work":
        figures |= {figure.replace("cluster.", "cluster_ack."): found for figure, found in figures.items()}
    result.add(stage.product, figures)
    told = ", ".join(f"{key.partition('.')[2]} {figure:.4g}" for key, figure in figures.items())
    seconds = time.monotonic() - began
    print(f"round {turn + 1} {name} {stage.product} ({seconds:.0f} s): {told}", file=sys.stderr, flush=True)


def _command(options: argparse.Namespace) -> str:
    """What to type to do this again, without the places that are this machine's own."""
    words = ["python -m bench.cluster", *options.scenario, "--rounds", str(options.rounds)]
    words += ["--quick"] if options.quick else []
    words += ["--only", options.only] if options.only else []
    words += ["--name", options.name] if options.name != "cluster" else []
    return " ".join(words)


def _products(only: str | None, turn: int) -> list[str]:
    if only:
        return [only]
    products = ["ottla", "kafka"]
    return products if turn % 2 == 0 else products[::-1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=f"which to play (all): {', '.join(SCENARIOS)}")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is played (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--only", choices=["ottla", "kafka"], help="one of the two alone")
    parser.add_argument("--out", help="where to write the table, the JSON and the plot (docs/benchmarks)")
    parser.add_argument("--name", default="cluster", help="what to call the files (%(default)s)")
    parser.add_argument("--data", help="where the servers keep their data meanwhile (.cache)")
    options = parser.parse_args()
    for name in options.scenario:
        if name not in SCENARIOS:
            parser.error(f"no scenario is called {name!r}; there are {', '.join(SCENARIOS)}")
    if options.only != "ottla":
        try:
            jars.classpath()
        except jars.KafkaAbsent as absent:
            parser.error(f"{absent}; --only ottla measures Ottla alone")
    return options


if __name__ == "__main__":
    sys.exit(main())
