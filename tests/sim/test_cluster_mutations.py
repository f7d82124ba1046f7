"""The simulator of clusters has teeth: every bug that is put back is found, and breaks the law that it should break."""

import pytest

from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.sim.cluster.simulation import Outcome, simulate
from ottla.sim.compiled import IS_BUILT
from tests.sim.cluster_mutations import MUTATIONS, Mutation
from tests.sim.share_mutations import SHARE_MUTATIONS

ALL = (*MUTATIONS, *SHARE_MUTATIONS)


def hunt(mutation: Mutation) -> list[Outcome]:
    """What the seeds come to, up to the first that breaks a law as it should: the last of these, if any does.

    Those before it may have come to a standstill, which the bug may well do, but which proves little.
    """
    failures: list[Outcome] = []
    stored = 0
    for seed in mutation.seeds:
        outcome = simulate(mutation.scenario, seed)
        stored += outcome.entered.batches_stored
        if outcome.violation is not None:
            failures.append(outcome)
        if outcome.rule in mutation.rules:
            break
    assert not IS_BUILT or stored, "none of it ran on the compiled parts"
    return failures


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_the_bug_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.put_in(monkeypatch)
    failures = hunt(mutation)
    assert failures, f"{len(mutation.seeds)} seeds do not find it"
    assert failures[-1].rule in mutation.rules, str(failures[-1])


@pytest.mark.parametrize(
    "scenario",
    {each.scenario.name: each.scenario for each in ALL if isinstance(each.scenario, Scenario)}.values(),
    ids=lambda scenario: scenario.name,
)
def test_nothing_is_found_without_the_bug(scenario: Scenario) -> None:
    """The other scenarios are those of test_cluster."""
    outcome = simulate(scenario, 0)
    assert outcome.violation is None, str(outcome)
