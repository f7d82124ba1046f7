"""The simulator has teeth: every bug that is put back on purpose is found, and breaks the law it should break."""

import pytest

from ottla.sim.quorum.simulation import Failure, simulate
from tests.sim.mutations import MUTATIONS, Mutation


def hunt(mutation: Mutation) -> Failure | None:
    for seed in range(mutation.seeds):
        failure = simulate(mutation.scenario, seed)
        if failure is not None:
            return failure
    return None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_the_bug_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.put_in(monkeypatch)
    failure = hunt(mutation)
    assert failure is not None, f"{mutation.seeds} seeds of {mutation.scenario} do not find it"
    assert failure.rule in mutation.rules, str(failure)
