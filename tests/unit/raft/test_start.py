"""The role that a replica takes when it starts, by what its disk says."""

from ottla.raft.election_state import ElectionState
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest
from tests.unit.raft.bench import Bench, directory, fetch_response


def test_a_new_replica_follows_nobody() -> None:
    bench = Bench()
    assert (bench.role, bench.raft.epoch, bench.raft.leader_id) == ("Unattached", 0, -1)
    assert len(bench.sent(FetchRequest)) == 1, "it asks one of the others who leads"


def test_the_only_voter_leads_at_once_in_a_new_epoch() -> None:
    bench = Bench(1, epochs=[1, 1, 3], state=ElectionState(3, 1))
    assert (bench.role, bench.raft.epoch) == ("Leader", 4)
    assert bench.state == ElectionState(4, 1)
    assert bench.committed == 6, "the opening records are on disk, and nobody else has to have them"


def test_a_leader_never_leads_its_epoch_again() -> None:
    bench = Bench(epochs=[1, 2], state=ElectionState(2, 1))
    assert (bench.role, bench.raft.epoch) == ("Resigned", 2)
    bench.wait(1_000)
    assert (bench.role, bench.raft.epoch) == ("Prospective", 3)
    assert bench.state == ElectionState(3), "its own vote of epoch 2 is past"


def test_a_candidate_goes_on() -> None:
    bench = Bench(epochs=[1], state=ElectionState(2, -1, 1, directory(1)))
    assert (bench.role, bench.raft.epoch) == ("Candidate", 2)
    assert [node_id for node_id, _ in bench.sent(VoteRequest)] == [2, 3]


def test_a_candidate_with_another_disk_is_none() -> None:
    bench = Bench(epochs=[1], state=ElectionState(2, -1, 1, directory(9)))
    assert bench.role == "Unattached"


def test_a_follower_fetches_from_its_leader() -> None:
    bench = Bench(epochs=[1, 2], state=ElectionState(2, 3))
    assert bench.role == "Follower"
    assert [node_id for node_id, _ in bench.sent(FetchRequest)] == [3]


def test_a_follower_of_an_unknown_leader_asks_around() -> None:
    bench = Bench(epochs=[1, 2], state=ElectionState(2, 7))
    assert (bench.role, bench.raft.leader_id) == ("Unattached", 7)


def test_the_log_may_know_more_than_the_file() -> None:
    bench = Bench(epochs=[1, 5], state=ElectionState(2, -1, 3, directory(3)))
    assert bench.state == ElectionState(5), "the vote was of an epoch that has passed"


def test_who_lost_its_memory_takes_no_part_in_the_epoch_it_led() -> None:
    bench = Bench(static=True)
    bench.sent(FetchRequest)
    bench.answer(next(iter(bench.open)), fetch_response(1, 5, code=74))
    assert (bench.role, bench.state) == ("Resigned", ElectionState(5, 1))


def test_an_observer_never_stands_for_election() -> None:
    bench = Bench(2, 3, own_id=1)
    bench.wait(60_000)
    assert (bench.role, bench.raft.epoch) == ("Unattached", 0)
