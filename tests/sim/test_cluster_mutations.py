"""The simulator of clusters has teeth: every bug that is put back is found, and breaks the law that it should break."""

import pytest

from ottla.sim.cluster.simulation import Outcome, simulate
from tests.sim.cluster_mutations import MUTATIONS, Mutation


def hunt(mutation: Mutation) -> Outcome | None:
    for seed in mutation.seeds:
        outcome = simulate(mutation.scenario, seed)
        if outcome.violation is not None:
            return outcome
    return None


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(
            mutation,
            id=mutation.name.replace(" ", "-"),
            marks=[pytest.mark.long, pytest.mark.timeout(1_800)] if mutation.is_rare else [],
        )
        for mutation in MUTATIONS
    ],
)
def test_the_bug_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.put_in(monkeypatch)
    found = hunt(mutation)
    assert found is not None, f"{len(mutation.seeds)} seeds do not find it"
    assert found.rule in mutation.rules, str(found)
