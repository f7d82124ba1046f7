"""Measure a large cluster in simulation: its making, the loss of a controller, a restart, the loss of a broker.

    python -m bench.scale [--brokers N] [--partitions N] [--quick] [--out DIRECTORY]

The result goes to docs/benchmarks as scale.md and scale.json, or with --quick, whose figures mean nothing, only to the
screen.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from bench import machine
from bench.scale.estate import Sizes
from bench.scale.page import page, write
from bench.scale.play import QUICK, play
from tests.peers.jars import CHECKOUT

_FACTS = ("cores", "processor", "memory", "kernel", "python", "ottla")


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else Sizes(options.brokers, options.partitions)
    facts = machine.facts()
    result = {
        "command": _command(options),
        "machine": {name: facts[name] for name in _FACTS},
        "sizes": dataclasses.asdict(sizes),
    }
    result |= play(sizes, lambda text: print(text, file=sys.stderr, flush=True))
    print(page(result))
    out = options.out or (None if options.quick else CHECKOUT / "docs" / "benchmarks")
    if out is not None:
        write(Path(out), result)
    return 0


def _command(options: argparse.Namespace) -> str:
    """What to type to do this again, without the places that are this machine's own."""
    words = ["python -m bench.scale"]
    words += ["--quick"] if options.quick else []
    words += ["--brokers", str(options.brokers)] if options.brokers != Sizes.brokers else []
    words += ["--partitions", str(options.partitions)] if options.partitions != Sizes.partitions else []
    return " ".join(words)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--brokers", type=int, default=Sizes.brokers, help="how many (%(default)s)")
    parser.add_argument("--partitions", type=int, default=Sizes.partitions, help="how many (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--out", help="where to write the page and the JSON (docs/benchmarks)")
    options = parser.parse_args()
    if options.brokers < 6 or options.partitions % Sizes.topic_partitions or options.partitions < 400:
        parser.error(
            f"six brokers at least, and partitions in multiples of {Sizes.topic_partitions}, 400 at least"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
