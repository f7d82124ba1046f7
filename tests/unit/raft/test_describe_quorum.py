"""DescribeQuorum: everybody, and how far they are."""

import pytest

from ottla.raft import leader
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from tests.unit.raft.bench import TOPIC, Bench, directory

KIND = DescribeQuorumRequest.TopicData


def request(topic: str = TOPIC, partition: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[KIND(topic_name=topic, partitions=[KIND.PartitionData(partition_index=partition)])]
    )


def test_a_leader_knows_everybody() -> None:
    bench = Bench().establish()
    end = bench.raft.end_offset
    bench.fetch_by(7, 1)
    response = bench.ask(request())
    part = response.topics[0].partitions[0]
    assert (part.leader_id, part.leader_epoch, part.high_watermark) == (1, 1, end)
    states = {each.replica_id: each for each in part.current_voters}
    assert (states[1].log_end_offset, states[1].last_fetch_timestamp) == (end, bench.now)
    assert (states[2].log_end_offset, states[2].last_caught_up_timestamp) == (end, bench.now)
    assert (states[3].log_end_offset, states[3].last_fetch_timestamp) == (-1, -1)
    assert states[2].replica_directory_id == directory(2)
    assert [(each.replica_id, each.log_end_offset) for each in part.observers] == [(7, 1)]
    assert {node.node_id: node.listeners[0].port for node in response.nodes} == {1: 9001, 2: 9002, 3: 9003}


def test_older_versions_are_spared_what_they_cannot_say() -> None:
    response = Bench().establish().ask(request(), version=1)
    assert response.nodes == []
    assert not any(any(each.replica_directory_id) for each in response.topics[0].partitions[0].current_voters)
    assert response.encode(1)


def test_observers_that_left_are_forgotten() -> None:
    bench = Bench(1)
    bench.fetch_by(7, 1)
    bench.wait(299_999)
    assert len(bench.ask(request()).topics[0].partitions[0].observers) == 1
    bench.wait(1)
    assert bench.ask(request()).topics[0].partitions[0].observers == []


def look_on(bench: Bench, id: int) -> None:
    """Fetch as an observer in a directory of this number."""
    bench.fetch_by(7, 1, directory_id=id.to_bytes(16, "big"))


def test_invented_observers_are_bounded_and_the_true_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "OBSERVERS_MAX", 100)
    bench = Bench(1, 2, 3).establish()
    for number in range(1_000):
        look_on(bench, 1_000 + number)
        if number % 50 == 0:
            look_on(bench, 7)
    observers = bench.ask(request()).topics[0].partitions[0].observers
    assert len(observers) == 100
    assert (7).to_bytes(16, "big") in {each.replica_directory_id for each in observers}
    assert len(bench.ask(request()).topics[0].partitions[0].current_voters) == 3


def test_observers_that_left_are_forgotten_without_being_asked_for() -> None:
    bench = Bench(1)
    for number in range(100):
        look_on(bench, 10 + number)
    bench.wait(200_000)
    look_on(bench, 500)
    bench.wait(200_000)
    for number in range(100):
        look_on(bench, 1_000 + number)
    left = {int.from_bytes(key.directory_id, "big") for key in bench.leader_role.observers}
    assert left == {500, *range(1_000, 1_100)}


def test_who_does_not_lead_does_not_know() -> None:
    part = Bench().ask(request()).topics[0].partitions[0]
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_other_topics_have_no_quorum() -> None:
    bench = Bench(1)
    for asked in (request("other"), request(partition=3)):
        part = bench.ask(asked).topics[0].partitions[0]
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
