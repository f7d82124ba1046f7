"""Runs scenarios of whole clusters from seeds, and makes failures smaller."""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass

from ottla.sim.cluster.fleet import Step
from ottla.sim.cluster.run import Run
from ottla.sim.cluster.scenarios import (
    blackout,
    clock_jumps,
    cuts,
    deaths,
    everything,
    full_disks,
    last_standing,
    late_marker,
    newcomers,
    one_replica,
    one_replica_unsynced,
    pauses,
    power,
    restarts,
    share_groups,
    slow_disks,
    slow_readers,
    two_elections,
    unsynced,
)
from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.sim.cluster.tally import NOTHING, Tally
from ottla.sim.compiled import NOTHING_ENTERED, Entered, entered, only_python
from ottla.sim.violation import Violation

SCENARIOS: dict[str, Scenario] = {
    each.SCENARIO.name: each.SCENARIO
    for each in (
        deaths,
        power,
        blackout,
        cuts,
        pauses,
        restarts,
        everything,
        two_elections,
        last_standing,
        newcomers,
        late_marker,
        unsynced,
        one_replica,
        one_replica_unsynced,
        full_disks,
        clock_jumps,
        slow_disks,
        slow_readers,
        share_groups,
    )
}


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    scenario: str
    seed: int
    without: tuple[str, ...]
    parts: tuple[str, ...]  # perils and workloads that it had
    digest: int
    virtual_s: float
    calls: int
    acknowledged: int
    steps: tuple[Step, ...]
    perils: tuple[str, ...]
    violation: Violation | None
    entered: Entered = NOTHING_ENTERED  # what the compiled parts did of it
    in_python: bool = False
    tally: Tally = NOTHING

    @property
    def rule(self) -> str:
        """The law that was broken."""
        return "" if self.violation is None else self.violation.rule

    @property
    def command(self) -> str:
        """What runs it once more."""
        left_out = f" --without {','.join(self.without)}" if self.without else ""
        python = " --python" if self.in_python else ""
        return f"python -m ottla.sim cluster --scenario {self.scenario} --seed {self.seed}{left_out}{python}"

    def __str__(self) -> str:
        return f"{self.violation}\nagain: {self.command}"


def simulate(
    scenario: str | Scenario, seed: int, without: Collection[str] = (), *, in_python: bool = False
) -> Outcome:
    """Run a scenario from a seed: one of those there are, or another. With `in_python` without the compiled parts."""
    known = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
    run = Run(known, seed, without)
    violation: Violation | None = None
    before = entered()
    try:
        with only_python() if in_python else nullcontext():
            run.go()
    except Violation as broken:
        violation = broken.with_traceback(None)
    except Exception as error:  # noqa: BLE001  # whatever it is, the seed repeats it
        violation = Violation(type(error).__name__, str(error))
        violation.__cause__ = error
    fleet = run.fleet
    return Outcome(
        known.name,
        seed,
        tuple(without),
        tuple(run.parts),
        fleet.digest,
        fleet.timeline.now,
        fleet.timeline.calls,
        sum(sent.offset is not None for sent in fleet.history.sent),
        tuple(fleet.steps),
        tuple(map(str, run.perils)),
        violation,
        Entered(*(now - then for now, then in zip(entered(), before, strict=True))),
        in_python,
        Tally.of(fleet),
    )


def shrink(failure: Outcome) -> Outcome:
    """Leave out every peril and workload that it does not take to break the same law."""
    for part in failure.parts:
        smaller = simulate(
            failure.scenario, failure.seed, (*failure.without, part), in_python=failure.in_python
        )
        if smaller.violation is not None and smaller.rule == failure.rule:
            failure = smaller
    return failure


def tell(failure: Outcome, steps: int) -> str:
    """A failure as people read it: what happened, step by step, up to the breach."""
    lines = [f"{step.time_s:9.4f} {step.who}: {step.text}" for step in failure.steps[-steps:]]
    perils = [f"  {peril}" for peril in failure.perils]
    return "\n".join([*lines, "", *perils, "", str(failure), ""])
