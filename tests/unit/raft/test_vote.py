"""Elections: who gets a vote, who stands, and who wins."""

import pytest

from ottla.raft.election_state import ElectionState
from ottla.raft.event import Failure
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest
from tests.unit.raft.bench import (
    Bench,
    directory,
    fetch_response,
    vote_request,
    vote_response,
)


def granted(bench: Bench, request: VoteRequest) -> bool:
    part = bench.ask(request).topics[0].partitions[0]
    assert part.error_code == 0
    return bool(part.vote_granted)


def refusal(bench: Bench, request: VoteRequest) -> ErrorCode:
    response = bench.ask(request)
    part = response.topics[0].partitions[0] if response.topics else response
    assert not response.topics or not part.vote_granted
    return ErrorCode(part.error_code)


def test_a_vote_is_given_once_an_epoch() -> None:
    bench = Bench(epochs=[1, 1])
    assert granted(bench, vote_request(2, 2, 1, 2))
    assert bench.state == ElectionState(2, -1, 2, directory(2))
    assert not granted(bench, vote_request(3, 2, 1, 9)), "another one is too late, however long its log"
    assert granted(bench, vote_request(2, 2, 1, 2)), "the same one may ask again"
    assert granted(bench, vote_request(3, 3, 1, 9)), "another epoch, another vote"


@pytest.mark.parametrize(
    ("last_epoch", "offset", "expected"),
    [(2, 3, True), (2, 4, True), (3, 1, True), (2, 2, False), (1, 9, False)],
)
def test_a_vote_goes_to_a_log_that_has_all_that_ours_has(
    last_epoch: int, offset: int, expected: bool
) -> None:
    bench = Bench(epochs=[1, 1, 2])
    assert granted(bench, vote_request(2, 9, last_epoch, offset)) is expected
    assert bench.raft.epoch == 9, "the epoch is taken over either way"


def test_a_pre_vote_promises_nothing() -> None:
    bench = Bench(epochs=[1, 1])
    assert granted(bench, vote_request(2, 1, 1, 2, pre_vote=True))
    assert granted(bench, vote_request(3, 1, 1, 2, pre_vote=True))
    assert not granted(bench, vote_request(3, 1, 1, 1, pre_vote=True))
    assert bench.state == ElectionState(1)


def test_a_follower_that_fetches_supports_its_leader() -> None:
    bench = Bench(epochs=[1, 1]).follow(2, epoch=2)
    assert granted(bench, vote_request(3, 2, 1, 2, pre_vote=True)), "the leader has not proved itself yet"
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2))
    assert not granted(bench, vote_request(3, 2, 1, 2, pre_vote=True))
    assert not granted(bench, vote_request(3, 2, 1, 2))


def test_a_leader_votes_for_nobody() -> None:
    bench = Bench().lead()
    assert not granted(bench, vote_request(2, 1, 0, 0))
    assert not granted(bench, vote_request(2, 1, 1, 99, pre_vote=True))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (vote_request(2, 2, 1, 2, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (vote_request(2, 2, 1, 2, topic="another"), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 2, 2, 2), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 2, 3, 2, pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 2, 1, -1), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 0, -1, 2, pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 0, 0, 2, pre_vote=True), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(2, 2, 1, 2, directory_id=directory(9)), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(2, 2, 1, 2, to=3), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_what_is_no_proper_request(request_: VoteRequest, code: ErrorCode) -> None:
    assert refusal(Bench(epochs=[1, 1]), request_) == code


def test_from_unattached_to_leader() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    assert (bench.role, bench.raft.epoch) == ("Prospective", 1)
    asked = bench.sent(VoteRequest)
    assert [node_id for node_id, _ in asked] == [2, 3]
    part = asked[0][1].topics[0].partitions[0]
    assert (part.pre_vote, part.replica_epoch, part.last_offset_epoch, part.last_offset) == (True, 1, 1, 2)
    bench.grant(2)
    assert (bench.role, bench.state) == ("Candidate", ElectionState(2, -1, 1, directory(1)))
    part = bench.sent(VoteRequest)[0][1].topics[0].partitions[0]
    assert (part.pre_vote, part.replica_epoch) == (False, 2)
    bench.grant(3)
    assert (bench.role, bench.state) == ("Leader", ElectionState(2, 1))
    assert {node_id for node_id, _ in bench.sent(BeginQuorumEpochRequest)} == {2, 3}
    assert bench.raft.end_offset == 5, "the change of leader, kraft.version and the voters"


def test_without_a_chance_there_is_no_election() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    bench.sent(VoteRequest)
    bench.grant(2, granted=False)
    assert bench.role == "Prospective"
    bench.grant(3, granted=False)
    assert (bench.role, bench.raft.epoch) == ("Unattached", 1)


def test_a_pre_vote_lost_leads_back_to_the_leader() -> None:
    bench = Bench(epochs=[1, 1]).follow(2, epoch=2)
    bench.wait(2_100)
    assert bench.role == "Prospective"
    bench.sent(VoteRequest)
    bench.grant(2, granted=False, leader_id=2)
    bench.grant(3, granted=False, leader_id=2)
    assert (bench.role, bench.raft.epoch, bench.raft.leader_id) == ("Follower", 2, 2)


def test_a_lost_election_is_followed_by_a_pre_vote() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    bench.sent(VoteRequest)
    bench.grant(2)
    bench.sent(VoteRequest)
    bench.grant(2, granted=False)
    bench.grant(3, granted=False)
    assert (bench.role, bench.raft.epoch) == ("Candidate", 2), "it waits for its time to be over"
    bench.wait(1_000)
    assert (bench.role, bench.raft.epoch) == ("Prospective", 2)


def test_who_hears_of_a_higher_epoch_steps_back() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    bench.sent(VoteRequest)
    bench.answer(2, vote_response(7, False, code=ErrorCode.FENCED_LEADER_EPOCH))
    assert (bench.role, bench.raft.epoch) == ("Unattached", 7)
    assert bench.state == ElectionState(7)


def test_a_voter_that_knows_no_pre_votes_is_not_waited_for() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    bench.sent(VoteRequest)
    bench.step(Failure(bench.open[2], 2, ErrorCode.UNSUPPORTED_VERSION))
    assert (bench.role, bench.raft.epoch) == ("Candidate", 2)


def test_a_vote_that_comes_late_counts_for_nothing() -> None:
    bench = Bench(epochs=[1, 1])
    bench.wait(1_000)
    bench.sent(VoteRequest)
    late = dict(bench.open)
    bench.grant(2)
    bench.open = late
    bench.grant(3, epoch=1)
    assert bench.role == "Candidate", "that was a pre-vote"


def test_jitter_comes_from_outside() -> None:
    bench = Bench(draw=lambda bound: bound - 1)
    bench.wait(1_998)
    assert bench.role == "Unattached"
    bench.wait(2)
    assert bench.role == "Prospective"
