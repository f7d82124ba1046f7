"""Measure Ottla beside Apache Kafka.

python -m bench [SCENARIO …] [--rounds N] [--quick] [--only ottla|kafka] [--out DIRECTORY] [--name NAME]

The two products take turns, and the order changes from round to round. The result goes to docs/benchmarks,
or with --quick, whose figures mean nothing, only to the screen.
"""

import argparse
import dataclasses
import sys
import tempfile
import time
from pathlib import Path

from bench import machine
from bench.report import Result
from bench.rows import ROWS
from bench.scenarios import OTTLA_ALONE, SCENARIOS
from bench.stage import QUICK, Sizes, Stage
from tests.peers import jars
from tests.peers.jars import CHECKOUT


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else Sizes()
    result = Result(_command(options), machine.facts(), dataclasses.asdict(sizes), name=options.name)
    chosen = options.scenario or list(SCENARIOS)
    CHECKOUT.joinpath(".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data or CHECKOUT / ".cache", prefix="bench-") as directory:
        for turn in range(options.rounds):
            for name in chosen:
                for product in _products(options.only, turn):
                    if product == "kafka" and name in OTTLA_ALONE:
                        continue
                    _play(result, name, Stage(product, sizes, Path(directory)), turn)
    print("\n".join(result.table()))
    out = options.out or (None if options.quick else CHECKOUT / "docs" / "benchmarks")
    if out is not None:
        result.write(Path(out))
    medians = result.medians()
    return 1 if any(row.verdict(medians) == "FAILS" for row in ROWS) else 0


def _play(result: Result, name: str, stage: Stage, turn: int) -> None:
    began = time.monotonic()
    figures = SCENARIOS[name](stage)
    result.add(stage.product, figures)
    told = ", ".join(f"{key.partition('.')[2]} {figure:.4g}" for key, figure in figures.items())
    seconds = time.monotonic() - began
    print(f"round {turn + 1} {name} {stage.product} ({seconds:.0f} s): {told}", file=sys.stderr, flush=True)


def _command(options: argparse.Namespace) -> str:
    """What to type to do this again, without the places that are this machine's own."""
    words = ["python -m bench", *options.scenario, "--rounds", str(options.rounds)]
    words += ["--quick"] if options.quick else []
    words += ["--only", options.only] if options.only else []
    words += ["--name", options.name] if options.name != "broker" else []
    return " ".join(words)


def _products(only: str | None, turn: int) -> list[str]:
    if only:
        return [only]
    products = ["ottla", "kafka"]
    return products if turn % 2 == 0 else products[::-1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Ottla beside Apache Kafka.")
    parser.add_argument("scenario", nargs="*", help=f"which to play (all): {', '.join(SCENARIOS)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is played (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--only", choices=["ottla", "kafka"], help="one of the two alone")
    parser.add_argument("--out", help="where to write the table, the JSON and the plot (docs/benchmarks)")
    parser.add_argument("--name", default="broker", help="what to call the files (%(default)s)")
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
