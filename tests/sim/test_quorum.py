"""The quorum, simulated: over two thousand seeds of all scenarios; a seed that breaks a law is shrunk and told.

OTTLA_SEED moves the first seed. `make soak` runs as many as OTTLA_SEEDS says, from a seed that it draws and prints.
"""

import os
from random import SystemRandom

import pytest

from ottla.sim.quorum.simulation import SCENARIOS, shrink, simulate

# About as many as take the same time; together they are more than 2,000.
SEEDS = {
    "first-election": 220,
    "leader-failure": 140,
    "all-killed": 200,
    "leader-cut-off": 140,
    "majority-reachable": 140,
    "leaders-in-turn": 140,
    "one-loses-all": 160,
    "membership": 160,
    "racing-changes": 80,
    "replaced-disk": 120,
    "upgrade": 120,
    "snapshots": 120,
    "torn-disks": 120,
    "one-way-cuts": 110,
    "deaf-follower": 60,
}


def run(scenario: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        failure = simulate(scenario, seed)
        if failure is not None:
            pytest.fail(f"{failure}\nshrunk: {shrink(failure)}", pytrace=False)


def test_there_are_enough_seeds() -> None:
    assert SEEDS.keys() == SCENARIOS.keys()
    assert sum(SEEDS.values()) >= 2_000


@pytest.mark.timeout(600)  # some 15 s, unless the machine is busy with other things
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_laws_hold(scenario: str) -> None:
    run(scenario, int(os.environ.get("OTTLA_SEED") or 0), SEEDS[scenario])


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_laws_hold_for_long(scenario: str) -> None:
    first = int(os.environ.get("OTTLA_SEED") or SystemRandom().randrange(1 << 40))
    print(f"to replay: OTTLA_SEED={first} pytest -m long {__file__}")
    run(scenario, first, int(os.environ.get("OTTLA_SEEDS") or 2_000))
