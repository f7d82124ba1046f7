"""Simulations of the quorum: a scenario and a seed, run, and what came of it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ottla.raft.event import Event
from ottla.raft.ready import Ready
from ottla.sim.quorum.node import SimNode
from ottla.sim.quorum.scenarios import (
    all_killed,
    deaf_follower,
    first_election,
    leader_cut_off,
    leader_failure,
    leaders_in_turn,
    majority_reachable,
    membership,
    one_loses_all,
    one_way_cuts,
    racing_changes,
    replaced_disk,
    snapshots,
    torn_disks,
    upgrade,
)
from ottla.sim.quorum.world import LOST_WITH_A_DISK, World
from ottla.sim.violation import Violation

SCENARIOS: dict[str, Callable[[World], None]] = {
    # Kafka's own.
    "first-election": first_election.run,
    "leader-failure": leader_failure.run,
    "all-killed": all_killed.run,
    "leader-cut-off": leader_cut_off.run,
    "majority-reachable": majority_reachable.run,
    "leaders-in-turn": leaders_in_turn.run,
    "one-loses-all": one_loses_all.run,
    # Ours.
    "membership": membership.run,
    "racing-changes": racing_changes.run,
    "replaced-disk": replaced_disk.run,
    "upgrade": upgrade.run,
    "snapshots": snapshots.run,
    "torn-disks": torn_disks.run,
    "one-way-cuts": one_way_cuts.run,
    "deaf-follower": deaf_follower.run,
}
_LOSES_DISKS = {"one-loses-all", "replaced-disk"}

Watch = Callable[[int, SimNode, Event, Ready], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that broke a law."""

    scenario: str
    seed: int
    without: frozenset[str]
    perils: tuple[str, ...]
    error: Exception

    @property
    def rule(self) -> str:
        """Which law was broken; where a node died, the kind of its death."""
        return self.error.rule if isinstance(self.error, Violation) else type(self.error).__name__

    @property
    def command(self) -> str:
        """What to type to see it again."""
        words = ["python -m ottla.sim quorum", f"--scenario {self.scenario}", f"--seed {self.seed}"]
        if self.without:
            words.append("--without " + ",".join(sorted(each.replace(" ", "_") for each in self.without)))
        return " ".join(words)

    def __str__(self) -> str:
        text = str(self.error) if isinstance(self.error, Violation) else f"a node died of {self.error!r}"
        return f"{text}\nto replay: {self.command}"


def simulate(
    scenario: str, seed: int, without: Collection[str] = (), watch: Watch | None = None
) -> Failure | None:
    """Run a scenario from a seed; None when all laws held."""
    world = World(seed, without, LOST_WITH_A_DISK if scenario in _LOSES_DISKS else ())
    cluster = world.cluster
    if watch is not None:
        cluster.watch = lambda node, event, ready: watch(cluster.schedule.now, node, event, ready)
    try:
        SCENARIOS[scenario](world)
    except Exception as error:  # noqa: BLE001 - whatever a node dies of is a find
        return Failure(scenario, seed, world.without, tuple(world.perils), error)
    return None


def shrink(failure: Failure) -> Failure:
    """The same failure with as few perils as it needs."""
    smallest = failure
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for peril in smallest.perils:
            tried = simulate(failure.scenario, failure.seed, smallest.without | {peril})
            if tried is not None and tried.rule == failure.rule:
                smallest, is_smaller = tried, True
                break
    return smallest
