"""Measure the data source `ottla` beside Spark's own Kafka connector, on Apache Kafka and on Ottla, in one session.

    python -m bench.spark [SCENARIO …] [--rounds N] [--quick] [--only kafka|ottla] [--out DIRECTORY]
    python -m bench.spark operators [NAME …] [--against REVISION] …            each operator of the DSL (`operators.py`)

One driver of Spark, local[2], serves the whole run, and everything is done once unmeasured by each format on each
server. Then servers and formats take turns, and the order changes from round to round. Before that it is proved that
both formats read the same rows. The result goes to docs/benchmarks as spark.md, spark.svg and spark.json, or with
--quick, whose figures mean nothing, only to the screen.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from bench.spark import operators
from bench.spark.figures import FORMATS, PRODUCTS, Rounds, rows, table
from bench.spark.scenes import QUICK, READERS, SCENES, Scene, Sizes
from bench.stage import Sizes as ServerSizes
from bench.stage import Stage
from tests.peers.connector import connector_jars
from tests.peers.driver import SparkDriver
from tests.peers.jars import CHECKOUT, KafkaAbsent, classpath


def main() -> int:
    if sys.argv[1:2] == ["operators"]:
        return operators.main(sys.argv[2:])
    options = _options()
    sizes = QUICK if options.quick else Sizes()
    CHECKOUT.joinpath(".cache").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=options.data or CHECKOUT / ".cache", prefix="bench-") as directory,
        contextlib.ExitStack() as running,
    ):
        products = [options.only] if options.only else list(PRODUCTS)
        names = options.scenario or list(SCENES)
        scenes = _scenes(products, sizes, Path(directory), running, filled=not READERS.isdisjoint(names))
        rounds: Rounds = {}
        for turn in range(options.rounds + 1):
            for name in names:
                for product, scene in list(scenes.items())[:: -1 if turn % 2 else 1]:
                    for format in FORMATS[:: -1 if turn // 2 % 2 else 1]:
                        figures = SCENES[name](scene, format)
                        _tell(turn, f"{name} {product} {format}", figures)
                        # The first time only warms up.
                        for each, figure in figures.items() if turn else ():
                            found = rounds.setdefault(each, {}).setdefault(product, {})
                            found.setdefault(format, []).append(figure)
    found_rows = list(rows(rounds))
    print("\n".join(table(found_rows)))
    out = options.out or (None if options.quick else CHECKOUT / "docs" / "benchmarks")
    if out is not None:
        from bench.spark.page import write  # which draws, and needs what not every scenario does

        write(Path(out), _command(options), sizes, rounds)
    return 1 if any(row.verdict == "FAILS" for row in found_rows) else 0


def _scenes(
    products: list[str], sizes: Sizes, directory: Path, running: contextlib.ExitStack, *, filled: bool
) -> dict[str, Scene]:
    """A driver, and the servers, `filled` with what is to be read; all end with `running`."""
    settings = {
        "spark.jars": connector_jars(),
        "spark.driver.memory": "3g",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }
    driver = running.enter_context(SparkDriver(directory / "driver", settings, ottla=True))
    scenes = {}
    for product in products:
        server = running.enter_context(Stage(product, ServerSizes(), directory).server())
        scene = scenes[product] = Scene(driver, server, sizes)
        if filled:
            scene.fill()
            scene.compare()
    return scenes


def _tell(turn: int, who: str, figures: dict[str, float]) -> None:
    told = ", ".join(f"{each.partition('.')[2]} {figure:.4g}" for each, figure in figures.items())
    print(f"{f'round {turn}' if turn else 'warm up'} {who}: {told}", file=sys.stderr, flush=True)


def _command(options: argparse.Namespace) -> str:
    """What to type to do this again, without the places that are this machine's own."""
    words = ["python -m bench.spark", *options.scenario, "--rounds", str(options.rounds)]
    words += ["--quick"] if options.quick else []
    return " ".join(words + (["--only", options.only] if options.only else []))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=f"which to play (all): {', '.join(SCENES)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--only", choices=list(PRODUCTS), help="one of the two servers alone")
    parser.add_argument("--out", help="where to write the table and the JSON (docs/benchmarks)")
    parser.add_argument("--data", help="where servers and driver keep their data meanwhile (.cache)")
    options = parser.parse_args()
    for name in options.scenario:
        if name not in SCENES:
            parser.error(f"no scenario is called {name!r}; there are {', '.join(SCENES)}")
    try:
        connector_jars()
        if options.only != "ottla":
            classpath()
    except KafkaAbsent as absent:
        parser.error(str(absent))
    return options


if __name__ == "__main__":
    sys.exit(main())
