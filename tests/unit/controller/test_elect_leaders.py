"""Elections that are asked for."""

import pytest

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from tests.unit.controller.stage import Stage, wish


def elect(stage: Stage, kind: int, asked: dict[str, list[int]] | None) -> dict[str, list[tuple[int, int]]]:
    given = None
    if asked is not None:
        given = [
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=each) for name, each in asked.items()
        ]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=given)
    response = stage.do(lambda controller, now: controller.elect_leaders(request, now))
    return {
        each.topic: [(part.partition_id, part.error_code) for part in each.partition_result]
        for each in response.replica_election_results
    }


def test_where_all_is_well_no_election_is_needed() -> None:
    stage = Stage(1)
    stage.create(wish("one", 2))
    assert elect(stage, 0, {"one": [0, 1, 7], "absent": [0]}) == {
        "one": [
            (0, ErrorCode.ELECTION_NOT_NEEDED),
            (1, ErrorCode.ELECTION_NOT_NEEDED),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ],
        "absent": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    }
    request = ElectLeadersRequest(
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="one", partitions=[0])]
    )
    (answer,) = stage.do(
        lambda controller, now: controller.elect_leaders(request, now)
    ).replica_election_results
    assert answer.partition_result[0].error_message == "Leader election not needed for topic partition."
    assert elect(stage, 0, None) == {"one": []}
    assert elect(stage, 1, {"one": [0]}) == {"one": [(0, ErrorCode.ELECTION_NOT_NEEDED)]}
    assert elect(stage, 0, {}) == {}
    with pytest.raises(BrokerError, match="Unknown election type 2"):
        elect(stage, 2, None)


def test_the_preferred_leader_comes_back() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.heartbeat(2, want_fence=True)
    assert elect(stage, 0, {"one": [0]}) == {"one": [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]}
    stage.heartbeat(2)
    assert elect(stage, 0, {"one": [0]}) == {"one": [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]}
    stage.alter_partition([1, 2])
    assert elect(stage, 0, None) == {"one": [(0, ErrorCode.NONE)]}
    assert stage.state("one").leader == 2


def test_an_unclean_election_takes_whoever_is_there() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.alter_partition([2])
    stage.heartbeat(2, want_fence=True)
    assert stage.state("one").leader == -1
    assert elect(stage, 1, {"one": [0]}) == {"one": [(0, ErrorCode.NONE)]}
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.leader_recovery_state) == (1, (1,), (), 1)


def test_an_unclean_election_needs_somebody() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    assert elect(stage, 1, {"one": [0]}) == {"one": [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]}


def test_a_topic_may_allow_unclean_elections() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}, configs={"unclean.leader.election.enable": "true"}))
    stage.alter_partition([2])
    stage.heartbeat(2, want_fence=True)
    assert stage.state("one").leader == 1
