"""Whole clusters, simulated: over a hundred seeds of all scenarios; a seed that breaks a law is shrunk and told.

They run on the compiled parts, as users do; with OTTLA_PYTHON=1 on their twins in Python. OTTLA_SEED moves the first
seed. `make soak` runs as many as OTTLA_SEEDS says, from a seed that it draws and prints.
"""

import os
import subprocess
import sys
from random import SystemRandom

import pytest

from ottla.sim.__main__ import main
from ottla.sim.cluster.simulation import SCENARIOS, shrink, simulate, tell
from tests.sim.cluster_mutations import commits_what_the_leader_alone_has

# Together more than a hundred, and about two and a half minutes of one core.
SEEDS = {
    "deaths": 18,
    "power": 12,
    "blackout": 18,
    "cuts": 18,
    "pauses": 16,
    "restarts": 16,
    "everything": 16,
    "two-elections": 4,
    "last-standing": 4,
    "newcomers": 4,
    "late-marker": 4,
    "unsynced": 8,
    "one-replica": 6,
    "one-replica-unsynced": 6,
    "full-disks": 5,
    "clock-jumps": 4,
    "slow-disks": 4,
    "slow-readers": 4,
    "share-groups": 6,
}
IN_PYTHON = bool(os.environ.get("OTTLA_PYTHON"))
CHUNK = 4  # seeds a test, so that one that fails is seen before the others have run


def run(scenario: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        outcome = simulate(scenario, seed, in_python=IN_PYTHON)
        if outcome.violation is not None:
            pytest.fail(tell(shrink(outcome), steps=60), pytrace=False)


CHUNKS = [
    (scenario, first, min(CHUNK, count - first))
    for scenario, count in SEEDS.items()
    for first in range(0, count, CHUNK)
]


def test_there_are_enough_seeds() -> None:
    assert set(SEEDS) == set(SCENARIOS)
    assert sum(SEEDS.values()) >= 100


@pytest.mark.parametrize(("scenario", "first", "count"), CHUNKS)
def test_all_laws_hold(scenario: str, first: int, count: int) -> None:
    run(scenario, int(os.environ.get("OTTLA_SEED", "0")) + first, count)


@pytest.mark.long
@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_all_laws_hold_for_long(scenario: str) -> None:
    first = int(os.environ.get("OTTLA_SEED", "0")) or SystemRandom().randrange(1 << 40)
    print(f"OTTLA_SEED={first}")
    run(scenario, first, int(os.environ.get("OTTLA_SEEDS", "7000")) // len(SCENARIOS))


def test_a_seed_repeats_itself_in_any_interpreter() -> None:
    """Whatever the hashes of texts and the addresses of objects are, the same bytes arrive at the same moments."""

    def digest(hash_seed: int) -> str:
        command = [sys.executable, "-m", "ottla.sim", "cluster", "--scenario", "everything", "--seed", "4"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        return done.stdout.rpartition(" ")[2]

    first = digest(1)
    assert first == digest(3)
    assert f"{simulate('everything', 4).digest:08x}" == first.strip()
    assert f"{simulate('everything', 5).digest:08x}" != first.strip()


def test_a_failure_is_shrunk_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits_what_the_leader_alone_has(monkeypatch)
    found = (simulate("deaths", seed) for seed in range(20))
    failure = next(each for each in found if each.violation is not None)
    smallest = shrink(failure)
    assert smallest.rule == failure.rule
    assert len(smallest.parts) < len(failure.parts)
    words = smallest.command.removeprefix("python -m ottla.sim ").split()
    assert main(words) == 1
    told = capsys.readouterr().out
    assert smallest.rule in told and "is killed" in told
