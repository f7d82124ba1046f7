"""Elections that are asked for, and replicas that move."""

import pytest

from ottla.controller.placement import place
from ottla.metadata.registration import Broker
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.world.entropy import SeededEntropy
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
    in_sync(stage, 1, [1, 2])
    assert elect(stage, 0, None) == {"one": [(0, ErrorCode.NONE)]}
    assert stage.state("one").leader == 2


def test_an_unclean_election_takes_whoever_is_there() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    in_sync(stage, 2, [2])
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
    in_sync(stage, 2, [2])
    stage.heartbeat(2, want_fence=True)
    assert stage.state("one").leader == 1


def in_sync(stage: Stage, leader: int, isr: list[int]) -> None:
    state = stage.state("one")
    kind = AlterPartitionRequest.TopicData
    part = kind.PartitionData(
        leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch, new_isr=isr
    )
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=stage.image.brokers[leader].epoch,
        topics=[kind(topic_id=stage.image.topics.by_name["one"].id, partitions=[part])],
    )
    response = stage.do(lambda controller, now: controller.alter_partition(request, 2, now))
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


def reassign(
    stage: Stage, replicas: list[int] | None, *, topic: str = "one", index: int = 0, may_resize: bool = True
) -> tuple[int, str | None]:
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = kind.ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[kind(name=topic, partitions=[partition])], allow_replication_factor_change=may_resize
    )
    response = stage.do(lambda controller, now: controller.alter_partition_reassignments(request, now))
    result = response.responses[0].partitions[0]
    return result.error_code, result.error_message


def moving(
    stage: Stage, topics: dict[str, list[int]] | None = None
) -> list[tuple[str, int, list[int], list[int]]]:
    kind = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    given = (
        None if topics is None else [kind(name=name, partition_indexes=each) for name, each in topics.items()]
    )
    request = ListPartitionReassignmentsRequest(topics=given)
    response = stage.do(lambda controller, now: controller.list_partition_reassignments(request, now))
    return [
        (each.name, part.partition_index, part.adding_replicas, part.removing_replicas)
        for each in response.topics
        for part in each.partitions
    ]


def test_replicas_move_from_one_broker_to_another() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1]}))
    assert moving(stage) == []
    assert reassign(stage, [2]) == (ErrorCode.NONE, None)
    assert stage.state("one").replicas == (2, 1)
    assert moving(stage) == [("one", 0, [2], [1])]
    assert moving(stage, {"one": [0, 5], "absent": [0]}) == [("one", 0, [2], [1])]
    state = stage.state("one")
    kind = AlterPartitionRequest.TopicData
    part = kind.PartitionData(
        leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch, new_isr=[1, 2]
    )
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=stage.image.brokers[1].epoch,
        topics=[kind(topic_id=stage.image.topics.by_name["one"].id, partitions=[part])],
    )
    response = stage.do(lambda controller, now: controller.alter_partition(request, 2, now))
    assert response.topics[0].partitions[0].error_code == ErrorCode.NEW_LEADER_ELECTED
    state = stage.state("one")
    assert (state.replicas, state.isr, state.leader, state.adding, state.removing) == ((2,), (2,), 2, (), ())
    assert moving(stage) == []


def test_a_move_can_be_given_up() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1]}))
    assert reassign(stage, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    reassign(stage, [2])
    assert reassign(stage, None) == (ErrorCode.NONE, None)
    state = stage.state("one")
    assert (state.replicas, state.isr, state.leader, state.reassigning) == ((1,), (1,), 1, False)


def test_on_one_node_there_is_nowhere_to_move_to() -> None:
    stage = Stage(1)
    stage.create(wish("one"))
    assert reassign(stage, [1]) == (ErrorCode.NONE, None)
    assert stage.records == []
    assert reassign(stage, [2]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 2, but no such broker is registered.",
    )
    assert reassign(stage, [1], topic="absent") == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find a topic named absent.",
    )
    assert reassign(stage, [1], index=4) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find partition one:4.",
    )


def test_the_number_of_replicas_may_be_kept_fixed() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1]}))
    assert reassign(stage, [1, 2], may_resize=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 1 to 2",
    )


def brokers(racks: dict[int, str | None], fenced: set[int] = frozenset()) -> list[Broker]:  # type: ignore[assignment]
    return [Broker(id, 0, bytes(16), {}, {}, rack, fenced=id in fenced) for id, rack in racks.items()]


@pytest.mark.parametrize("seed", range(5))
def test_placement_spreads_leaders_and_racks(seed: int) -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    placed = place(brokers(racks), 60, 3, SeededEntropy(seed))
    leaders = [each[0] for each in placed]
    assert {leaders.count(broker) for broker in racks} == {10}
    for each in placed:
        assert len(set(each)) == 3
        assert {racks[broker] for broker in each} == {"a", "b", "c"}


def test_placement_uses_fenced_brokers_last_and_never_to_lead() -> None:
    placed = place(brokers({1: None, 2: None, 3: None}, fenced={3}), 20, 3, SeededEntropy(1))
    assert all(each[0] in {1, 2} and set(each) == {1, 2, 3} for each in placed)


def test_placement_on_one_broker() -> None:
    assert place(brokers({1: None}), 3, 1, SeededEntropy(1)) == [[1], [1], [1]]


def test_placement_passes_over_brokers_whose_directories_are_all_cordoned() -> None:
    full = Broker(1, 0, bytes(16), {}, {}, fenced=False, directories=(b"d",), cordoned=(b"d",))
    assert place([full, *brokers({2: None})], 2, 1, SeededEntropy(1)) == [[2], [2]]
    with pytest.raises(BrokerError, match="cordoned"):
        place([full], 1, 1, SeededEntropy(1))
