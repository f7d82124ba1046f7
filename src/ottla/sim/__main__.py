"""Simulations by hand: `python -m ottla.sim quorum --scenario torn-disks --seed 17`.

Without a scenario all are run; with `--seeds 1000` so many seeds, the first included. A run that breaks a law is
shrunk, shown step by step up to the breach, and ends the command with status 1.
"""

import argparse
import sys
from collections.abc import Sequence

from ottla.sim.quorum.report import tell
from ottla.sim.quorum.simulation import SCENARIOS, shrink, simulate


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m ottla.sim", description="Run simulations from a seed.")
    parser.add_argument("subject", choices=["quorum"])
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="the scenario; all of them by default")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--without", default="", help="perils to leave out, as a failure names them")
    parser.add_argument(
        "--steps", type=int, default=60, help="how many of the last steps to show of a failure"
    )
    asked = parser.parse_args(words)
    without = [each.replace("_", " ") for each in asked.without.split(",") if each]
    for scenario in [asked.scenario] if asked.scenario else SCENARIOS:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            failure = simulate(scenario, seed, without)
            if failure is not None:
                smallest = shrink(failure)
                sys.stdout.write(tell(smallest, asked.steps))
                return 1
        sys.stdout.write(f"{scenario}: {asked.seeds} seeds from {asked.seed} on, all laws held\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
