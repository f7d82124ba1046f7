"""Simulations by hand: `python -m ottla.sim quorum --scenario torn-disks --seed 17`, or `cluster` for whole clusters.

Without a scenario all are run; with `--seeds 1000` so many seeds, the first included. A run that breaks a law is
shrunk, shown step by step up to the breach, and ends the command with status 1. `python -m ottla.sim history FILE`
looks for anomalies in what the clients of a real cluster have recorded.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from ottla.sim.cluster import simulation as cluster
from ottla.sim.history import command as history
from ottla.sim.quorum import simulation as quorum
from ottla.sim.quorum.report import tell as tell_quorum


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["history"]:
        return history.main(words[1:])
    scenarios = {*quorum.SCENARIOS, *cluster.SCENARIOS}
    parser = argparse.ArgumentParser(prog="python -m ottla.sim", description="Run simulations from a seed.")
    parser.add_argument("subject", choices=["quorum", "cluster"])
    parser.add_argument("--scenario", choices=sorted(scenarios), help="the scenario; all of them by default")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--without", default="", help="what to leave out, as a failure names it")
    parser.add_argument(
        "--steps", type=int, default=60, help="how many of the last steps to show of a failure"
    )
    parser.add_argument("--python", action="store_true", help="do without the compiled parts (cluster)")
    asked = parser.parse_args(words)
    known = quorum.SCENARIOS if asked.subject == "quorum" else cluster.SCENARIOS
    if asked.scenario and asked.scenario not in known:
        parser.error(f"{asked.scenario} is no scenario of {asked.subject}: {', '.join(known)}")
    run = _run_quorum if asked.subject == "quorum" else partial(_run_cluster, in_python=asked.python)
    without = [each for each in asked.without.split(",") if each]
    for scenario in [asked.scenario] if asked.scenario else known:
        told = ""
        for seed in range(asked.seed, asked.seed + asked.seeds):
            failure, told = run(scenario, seed, without, asked.steps)
            if failure:
                sys.stdout.write(failure)
                return 1
        sys.stdout.write(f"{scenario}: {asked.seeds} seeds from {asked.seed} on, all laws held{told}\n")
    return 0


def _run_quorum(scenario: str, seed: int, without: list[str], steps: int) -> tuple[str, str]:
    """Run one seed; return how it failed, or nothing, and what else there is to tell."""
    failure = quorum.simulate(scenario, seed, [each.replace("_", " ") for each in without])
    return ("" if failure is None else tell_quorum(quorum.shrink(failure), steps)), ""


def _run_cluster(
    scenario: str, seed: int, without: list[str], steps: int, *, in_python: bool
) -> tuple[str, str]:
    """Run one seed; return how it failed, or nothing, and the digest by which two runs are known to be the same."""
    outcome = cluster.simulate(scenario, seed, without, in_python=in_python)
    if outcome.violation is None:
        return "", f"; the last run is {outcome.digest:08x}"
    return cluster.tell(cluster.shrink(outcome), steps), ""


if __name__ == "__main__":
    sys.exit(main())
