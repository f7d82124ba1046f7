"""Peers: one request at a time, and a pause after a failure."""

from ottla.raft.ballot import Ballot
from ottla.raft.peers import Peers
from ottla.raft.settings import Node
from tests.unit.raft.bench import voters

NODES = [Node(id, f"node-{id}", 9000) for id in (1, 2, 3)]


def test_one_request_at_a_time() -> None:
    peers = Peers(timeout_ms=100, backoff_ms=20)
    peers.sent(1, 7, 1_000)
    assert not peers.is_ready(1, 1_050)
    assert peers.is_ready(2, 1_050)
    assert peers.is_any_under_way(1_050)
    assert peers.expects(1, 7)
    assert not peers.expects(1, 6)
    peers.answered(1, 6, 1_050, well=True)
    assert peers.expects(1, 7), "that was the answer to something else"
    peers.answered(1, 7, 1_050, well=True)
    assert peers.is_ready(1, 1_050)
    assert not peers.expects(1, 7), "an answer counts once"


def test_a_pause_after_a_failure() -> None:
    peers = Peers(timeout_ms=100, backoff_ms=20)
    peers.sent(1, 7, 1_000)
    peers.answered(1, 7, 1_010, well=False)
    assert peers.is_backing_off(1, 1_029)
    assert peers.deadline(1_010) == 1_030
    assert peers.is_ready(1, 1_030)
    assert not peers.is_any_under_way(1_020)


def test_a_request_that_is_not_answered_is_given_up() -> None:
    peers = Peers(timeout_ms=100, backoff_ms=20)
    peers.sent(1, 7, 1_000)
    assert not peers.has_timed_out(1, 1_099)
    assert peers.has_timed_out(1, 1_100)
    assert peers.is_ready(1, 1_100)
    peers.forget_all()
    assert not peers.expects(1, 7)
    assert peers.deadline(1_000) is None


def test_anybody_who_is_ready_is_asked() -> None:
    peers = Peers(timeout_ms=100, backoff_ms=20)
    assert peers.find_ready(NODES, 1_000, lambda bound: 1) == NODES[1]
    peers.sent(2, 7, 1_000)
    assert peers.find_ready(NODES, 1_000, lambda bound: 1) is None, "somebody owes an answer"
    peers.answered(2, 7, 1_000, well=False)
    assert peers.find_ready(NODES, 1_000, lambda bound: 1) == NODES[2]
    assert peers.find_ready([], 1_000, lambda bound: 1) is None


def test_a_ballot_counts_voters_once() -> None:
    ballot = Ballot(voters(1, 2, 3, 4, 5), 1)
    ballot.record(2, granted=True)
    ballot.record(2, granted=True)
    ballot.record(9, granted=True)
    assert not ballot.is_won
    assert [key.id for key in ballot.undecided] == [3, 4, 5]
    ballot.record(3, granted=False)
    ballot.record(4, granted=False)
    assert not ballot.is_lost
    ballot.record(5, granted=False)
    assert ballot.is_lost
    ballot.record(5, granted=True)
    assert ballot.is_won
    assert Ballot(voters(1), 1).is_won
