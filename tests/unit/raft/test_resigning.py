"""Stepping down: on request, at a shutdown, and what the others do then."""

import pytest

from ottla.raft.event import Resign, ShutDown
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from tests.unit.raft.bench import CLUSTER, TOPIC, Bench, begin_request, directory, told, vote_request


def end_request(leader_id: int, epoch: int, candidates: list[int]) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest.TopicData
    info = kind.PartitionData.ReplicaInfo
    part = kind.PartitionData(
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_candidates=[
            info(candidate_id=id, candidate_directory_id=directory(id)) for id in candidates
        ],
    )
    return EndQuorumEpochRequest(cluster_id=CLUSTER, topics=[kind(topic_name=TOPIC, partitions=[part])])


def test_the_longest_log_is_first_in_line() -> None:
    bench = Bench(1, 2, 3, 4, 5).establish()
    bench.append()
    end = bench.raft.end_offset
    bench.fetch_by(4, end)
    bench.fetch_by(5, end - 1)
    bench.step(Resign(1))
    assert (bench.role, bench.ready.leadership) == ("Resigned", (-1, 1))
    asked = bench.sent(EndQuorumEpochRequest)
    assert {node_id for node_id, _ in asked} == {2, 3, 4, 5}
    candidates = [each.candidate_id for each in asked[0][1].topics[0].partitions[0].preferred_candidates]
    assert candidates[0] == 4


def test_a_lead_of_the_past_is_not_given_up_again() -> None:
    bench = Bench().establish()
    bench.step(Resign(0))
    assert bench.role == "Leader"


def test_who_knows_is_not_told_again() -> None:
    bench = Bench().establish()
    bench.step(Resign(1))
    bench.sent(EndQuorumEpochRequest)
    kind = EndQuorumEpochResponse.TopicData
    part = kind.PartitionData(leader_id=1, leader_epoch=1)
    bench.answer(2, EndQuorumEpochResponse(topics=[kind(topic_name=TOPIC, partitions=[part])]))
    assert bench.raft.replica.role.unaware == {3}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("candidates", "patience_ms"),
    [
        ([1, 3], 0),
        ([3, 1], 500),
        ([3, 4, 1], 500),
        ([3, 4, 5, 1], 500),
        ([3, 1, 4, 5], 125),
        ([3, 4], 1_000),
        ([], 0),
    ],
)
def test_those_in_front_go_first(candidates: list[int], patience_ms: int) -> None:
    bench = Bench(1, 2, 3, 4, 5, epochs=[1]).follow(2, epoch=2)
    part = bench.ask(end_request(2, 2, candidates)).topics[0].partitions[0]
    assert part.error_code == 0
    if patience_ms:
        bench.wait(patience_ms - 1)
        assert bench.role == "Follower"
        bench.wait(1)
    assert bench.role == "Prospective"


def test_another_leader_cannot_end_the_epoch() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    part = bench.ask(end_request(3, 1, [1])).topics[0].partitions[0]
    assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert bench.role == "Follower"


def test_who_resigned_lets_others_try_and_votes_for_nobody_in_its_epoch() -> None:
    bench = Bench().establish()
    bench.step(Resign(1))
    end = bench.raft.end_offset
    pre = bench.ask(vote_request(2, 1, 1, end, pre_vote=True)).topics[0].partitions[0]
    assert pre.vote_granted
    binding = bench.ask(vote_request(2, 2, 1, end)).topics[0].partitions[0]
    assert binding.vote_granted, "another epoch, another vote"


def test_a_shutdown_hands_the_lead_over() -> None:
    bench = Bench().establish()
    bench.fetch_by(3, bench.raft.end_offset, wait_ms=500)
    bench.step(ShutDown(5_000))
    assert bench.role == "Resigned"
    assert not bench.raft.is_stopped
    assert told(bench.fetch_by(2, bench.raft.end_offset)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.wait(3_000)
    assert (bench.role, bench.raft.epoch) == ("Resigned", 1), "it does not come back into the game"
    bench.ask(vote_request(2, 2, 1, 99))
    assert not bench.raft.is_stopped, "nobody leads yet"
    bench.ask(begin_request(2, 2))
    assert bench.raft.is_stopped


def test_a_follower_stops_at_once() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.step(ShutDown(5_000))
    assert bench.raft.is_stopped
    bench.wait(10_000)
    assert bench.role == "Follower"


def test_the_only_voter_stops_at_once() -> None:
    bench = Bench(1)
    bench.step(ShutDown(5_000))
    assert bench.raft.is_stopped
