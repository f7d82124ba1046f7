"""What a replica says of itself to the metrics page."""

import pytest

from ottla.raft.election_state import ElectionState
from tests.unit.raft.bench import Bench, directory


def said(bench: Bench) -> tuple[str, int]:
    return bench.raft.standing, bench.raft.vote_id


def test_a_leader_has_voted_for_itself() -> None:
    assert said(Bench().establish()) == ("leader", 1)


@pytest.mark.parametrize(("own_id", "standing"), [(1, "follower"), (7, "observer")])
def test_who_follows_is_a_voter_or_an_observer(own_id: int, standing: str) -> None:
    assert said(Bench(own_id=own_id, state=ElectionState(3, leader_id=2))) == (standing, -1)


def test_who_knows_no_leader_may_have_voted() -> None:
    assert said(Bench()) == ("unattached", -1)
    assert said(Bench(state=ElectionState(3, -1, 2, directory(2)))) == ("unattached-voted", 2)


def test_who_would_lead_asks_before_it_stands() -> None:
    bench = Bench()
    bench.wait(bench.raft.deadline - bench.now)
    assert said(bench) == ("prospective", -1)
    bench = Bench(epochs=[1], state=ElectionState(3, -1, 1, directory(1)))
    assert said(bench) == ("candidate", 1)
