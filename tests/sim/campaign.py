"""`make sim`: 100 seeds of clusters on the compiled parts, and every bug that is put back; it prints what it did.

    python -m tests.sim.campaign --seeds 100 --processes 2

The scenarios share the seeds. It ends with status 1 when a law is broken, when a bug is not found, or when the compiled
parts were not run.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

import pytest

from ottla.sim.cluster.simulation import SCENARIOS, shrink, simulate, tell
from ottla.sim.cluster.tally import NOTHING, Tally
from ottla.sim.compiled import IS_BUILT, NOTHING_ENTERED, Entered
from tests.sim.cluster_mutations import MUTATIONS
from tests.sim.share_mutations import SHARE_MUTATIONS

BUGS = (*MUTATIONS, *SHARE_MUTATIONS)
STEPS = 60


class Done(NamedTuple):
    """What some seeds of a scenario, or the hunt for a bug, came to."""

    name: str
    seeds: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    tally: Tally = NOTHING
    entered: Entered = NOTHING_ENTERED
    failures: tuple[str, ...] = ()
    found: str = ""  # the law that a bug broke, and the seed

    def plus(self, other: "Done") -> "Done":
        return Done(
            self.name,
            self.seeds + other.seeds,
            self.virtual_s + other.virtual_s,
            self.cpu_s + other.cpu_s,
            self.tally.plus(other.tally),
            Entered(*(a + b for a, b in zip(self.entered, other.entered, strict=True))),
            self.failures + other.failures,
        )


def run_seed(scenario: str, seed: int) -> Done:
    """Run a seed of a scenario."""
    began = time.process_time()
    outcome = simulate(scenario, seed)
    failures = () if outcome.violation is None else (tell(shrink(outcome), STEPS),)
    took_s = time.process_time() - began
    return Done(scenario, 1, outcome.virtual_s, took_s, outcome.tally, outcome.entered, failures)


def hunt(number: int) -> Done:
    """Put a bug back, and look for the first seed that breaks one of its laws."""
    bug = BUGS[number]
    done = Done(bug.name)
    with pytest.MonkeyPatch.context() as patch:
        bug.put_in(patch)
        for seed in bug.seeds:
            began = time.process_time()
            outcome = simulate(bug.scenario, seed)
            took_s = time.process_time() - began
            done = done.plus(Done("", 1, outcome.virtual_s, took_s, outcome.tally, outcome.entered))
            if outcome.rule in bug.rules:
                return done._replace(found=f"{outcome.rule}, seed {seed}")
    return done._replace(failures=(f"{bug.name}: {len(bug.seeds)} seeds do not find it\n",))


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.campaign", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100, help="how many, of all scenarios together")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="all of them by default")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-bugs", action="store_true", help="put no bugs back")
    asked = parser.parse_args(words)
    if not IS_BUILT:
        print("FAILED: the compiled parts were not built, so nothing would be proved of what users run")
        return 1
    began = time.monotonic()
    names = asked.scenario or list(SCENARIOS)
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        seeds = _seeds(pool, names, asked.seed, asked.seeds)
        bugs = [] if asked.no_bugs else _bugs(pool)
    failures = [text for each in (*seeds, *bugs) for text in each.failures]
    failures += [f"{each.name}: no batch was stored by the compiled parts\n" for each in seeds if not each.entered[0]]
    total = Done("all")
    for each in seeds:
        total = total.plus(each)
    if not asked.scenario:
        unused = [name for name, count in total.entered._asdict().items() if not count]
        failures += [f"the compiled parts have not been entered: {name} is 0\n" for name in unused]
    print(f"\n{_figures(total)}")
    found = sum(bool(each.found) for each in bugs)
    print(f"bugs put back: {found} of {len(bugs)} found, in {sum(each.seeds for each in bugs)} seeds")
    print(f"{time.monotonic() - began:.0f} s in {asked.processes} processes")
    for text in failures:
        print(f"\nFAILED: {text}")
    return 1 if failures else 0


def _seeds(pool: ProcessPoolExecutor, names: list[str], first: int, count: int) -> list[Done]:
    """Run the seeds of scenarios, and tell of each scenario once it is through."""
    shares = {name: len(range(at, count, len(names))) or 1 for at, name in enumerate(names)}
    work = {pool.submit(run_seed, name, first + at): name for name in names for at in range(shares[name])}
    left = dict(shares)
    done = {name: Done(name) for name in names}
    for future in as_completed(work):
        name = work[future]
        done[name] = done[name].plus(future.result())
        left[name] -= 1
        if not left[name]:
            print(_figures(done[name]), flush=True)
    return list(done.values())


def _bugs(pool: ProcessPoolExecutor) -> list[Done]:
    """Hunt every bug, and tell in how many seeds it was found."""

    def told() -> Iterator[Done]:
        for done in pool.map(hunt, range(len(BUGS))):
            what = f"bug put back: {done.name}: {done.found or 'NOT FOUND'}"
            print(f"{what}; {done.seeds} seeds, {_lane(done)}", flush=True)
            yield done

    return list(told())


def _figures(done: Done) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in done.tally._asdict().items())
    took = f"{done.virtual_s:.0f} s of virtual time in {done.cpu_s:.0f} s"
    return f"{done.name}: {done.seeds} seeds, {took}; {counts}; {_lane(done)}"


def _lane(done: Done) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in done.entered._asdict().items())
    return f"compiled: {counts}"


if __name__ == "__main__":
    sys.exit(main())
