"""Replicas that move."""

import pytest

from ottla.controller.election import completed_reassignment
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.unit.controller.stage import Stage, wish


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
    assert stage.reassign([2]) == (ErrorCode.NONE, None)
    assert stage.state("one").replicas == (2, 1)
    assert moving(stage) == [("one", 0, [2], [1])]
    assert moving(stage, {"one": [0, 5], "absent": [0]}) == [("one", 0, [2], [1])]
    assert stage.alter_partition([1, 2]).error_code == ErrorCode.NEW_LEADER_ELECTED
    state = stage.state("one")
    assert (state.replicas, state.isr, state.leader, state.adding, state.removing) == ((2,), (2,), 2, (), ())
    assert moving(stage) == []


def test_a_move_can_be_given_up() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1]}))
    assert stage.reassign(None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    stage.reassign([2])
    assert stage.reassign(None) == (ErrorCode.NONE, None)
    state = stage.state("one")
    assert (state.replicas, state.isr, state.leader, state.reassigning) == ((1,), (1,), 1, False)


def test_on_one_node_there_is_nowhere_to_move_to() -> None:
    stage = Stage(1)
    stage.create(wish("one"))
    assert stage.reassign([1]) == (ErrorCode.NONE, None)
    assert stage.records == []
    assert stage.reassign([2]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 2, but no such broker is registered.",
    )
    assert stage.reassign([1], topic="absent") == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find a topic named absent.",
    )
    assert stage.reassign([1], index=4) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find partition one:4.",
    )


def test_the_number_of_replicas_may_be_kept_fixed() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1]}))
    assert stage.reassign([1, 2], may_resize=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 1 to 2",
    )


@pytest.mark.parametrize(
    ("current", "target", "adding", "removing", "replicas"),
    [
        # Kafka's PartitionReassignmentReplicasTest.
        ([3, 2, 1], [3, 2, 1], [], [], [3, 2, 1]),
        ([3, 2, 1], [3, 6, 2, 1, 5], [5, 6], [], [3, 6, 2, 1, 5]),
        ([3, 2, 1, 4], [7, 3, 1, 8], [7, 8], [2, 4], [7, 3, 1, 8, 2, 4]),
    ],
)
def test_what_a_reassignment_adds_and_removes(
    current: list[int], target: list[int], adding: list[int], removing: list[int], replicas: list[int]
) -> None:
    stage = Stage(*range(1, 9))
    stage.create(wish("one", assignments={0: current}))
    assert stage.reassign(target) == (ErrorCode.NONE, None)
    state = stage.state("one")
    assert (state.adding, state.removing) == (tuple(adding), tuple(removing))
    assert state.replicas == tuple(replicas)


@pytest.mark.parametrize(
    ("current", "target", "isr", "expected"),
    [
        # Kafka's PartitionReassignmentReplicasTest: who is in sync, and what then stands; None while it waits.
        ([0, 1, 2], [3, 4, 5], [0, 1, 2, 3, 4], None),
        ([0, 1, 2], [3, 4, 5], [0, 1, 2, 3, 4, 5], ((3, 4, 5), (3, 4, 5))),
        ([0, 1, 2], [0, 1, 3], [0, 1, 2, 3], ((0, 1, 3), (0, 1, 3))),
        ([0, 1, 2], [0, 1, 3], [0, 2, 3], ((0, 1, 3), (0, 3))),
        ([0, 1, 2], [0, 1, 3], [2, 3], ((0, 1, 3), (3,))),
        ([0, 1, 2], [0, 1, 3], [0, 1, 2], None),
        ([0, 1, 2, 3], [1, 2, 3, 4, 5], [0, 1, 2, 4, 5], ((1, 2, 3, 4, 5), (1, 2, 4, 5))),
        ([0, 1, 2, 3], [1, 2, 3, 4, 5], [0, 1, 2, 3, 5], None),
        ([0, 1, 2, 3, 4], [2, 3, 4, 5], [0, 1, 2, 3, 5], None),
        ([0, 1, 2, 3, 4], [2, 3, 4, 5], [0, 1, 2, 3, 4], None),
        ([0, 1, 2], [0, 1, 2], [0, 1, 2], None),
    ],
)
def test_when_a_reassignment_is_through(
    current: list[int], target: list[int], isr: list[int], expected: tuple[tuple[int, ...], ...] | None
) -> None:
    removing = sorted(set(current) - set(target))
    adding = sorted(set(target) - set(current))
    assert completed_reassignment((*target, *removing), tuple(isr), adding, removing) == expected


def test_moves_as_kafkas_own_test_makes_them() -> None:
    """ReplicationControlManagerTest.testCancelReassignPartitions, with brokers counted from 1."""
    stage = Stage(1, 2, 3, 4, 5)
    stage.create(
        wish("one", assignments={0: [2, 3, 4, 5], 1: [1, 2, 3, 4], 2: [5, 4, 2, 1], 3: [3, 4, 5, 2]}),
        wish("two", assignments={0: [5, 4, 3]}),
    )
    stage.heartbeat(4, want_fence=True)
    state = stage.state("one")
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((2, 3, 5), 2, 0, 1)
    assert stage.reassign([2, 3, 5], index=0) == (0, None)
    state = stage.state("one")
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((2, 3, 5), (2, 3, 5), 2, 1)
    assert stage.reassign([2, 3, 4, 1], index=1) == (0, None)
    state = stage.state("one", 1)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((2, 3, 4, 1), (1, 2, 3), 1, 0)
    assert stage.reassign([], index=3) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    )
    assert stage.reassign([2, 3, 4, 5, 1], topic="two") == (0, None)
    assert moving(stage) == [("two", 0, [1, 2], [])]
    answer = stage.alter_partition([5, 2, 3, 1], topic="two")
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, [5, 2, 3, 1], 3)
    assert moving(stage) == [], "all that was added is in sync"
    assert stage.reassign(None, topic="two")[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_giving_up_keeps_what_was_there() -> None:
    stage = Stage(1, 2, 3, 4, 5)
    stage.create(wish("one", assignments={0: [5, 4, 3]}))
    stage.heartbeat(4, want_fence=True)
    stage.reassign([2, 3, 4, 5, 1])
    assert stage.reassign(None) == (0, None)
    state = stage.state("one")
    # As in Kafka the order of the wish stays.
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((3, 4, 5), (5, 3), 5, 1)
    assert not state.reassigning


def test_a_second_move_takes_the_place_of_the_first() -> None:
    """ReplicationControlManagerTest.testReassignPartitionsHandlesNewReassignmentThatRemovesPreviouslyAddingReplicas."""
    stage = Stage(1, 2, 3, 4, 5, 6)
    stage.create(wish("one", assignments={0: [1, 2]}))
    stage.reassign([3, 4])
    stage.alter_partition([1, 2, 3])
    stage.reassign([5, 6])
    state = stage.state("one")
    assert (state.replicas, state.adding, state.removing) == ((5, 6, 1, 2, 3, 4), (5, 6), (1, 2, 3, 4))
    answer = stage.alter_partition([1, 2, 3, 4, 5, 6])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (stage.state("one").leader, stage.state("one").replicas) == (5, (5, 6))


def test_a_move_back_to_where_the_partition_was_ends() -> None:
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [1, 2]}))
    stage.reassign([3, 4])
    stage.reassign([1, 2])
    state = stage.state("one")
    assert (state.replicas, state.isr, state.reassigning) == ((1, 2), (1, 2), False)


def test_what_a_first_move_added_and_a_second_wants_is_awaited_still() -> None:
    stage = Stage(1, 2, 3, 4, 5)
    stage.create(wish("one", assignments={0: [1, 2]}))
    stage.reassign([3, 4])
    stage.reassign([3, 5, 1])
    state = stage.state("one")
    assert (state.adding, state.removing) == ((3, 5), (2, 4))
    stage.alter_partition([1, 2, 5])
    assert stage.state("one").reassigning
    stage.alter_partition([1, 2, 5, 3])
    assert (stage.state("one").replicas, stage.state("one").reassigning) == ((3, 5, 1), False)


def test_a_move_cannot_be_given_up_when_only_the_new_are_in_sync() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [1]}))
    stage.reassign([2, 3])
    stage.alter_partition([1, 2])
    stage.heartbeat(1, want_fence=True)
    assert (stage.state("one").leader, stage.state("one").isr) == (2, (2,))
    code, message = stage.reassign(None)
    assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "unclean leader election" in (message or "")


def test_a_move_of_a_partition_that_nobody_leads_is_given_up_without_an_election() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2]}))
    stage.reassign([3])
    stage.heartbeat(2, want_fence=True)
    assert (stage.state("one").leader, stage.state("one").elr) == (-1, (2,))
    assert stage.reassign(None) == (0, None)
    state = stage.state("one")
    assert (state.replicas, state.leader, state.elr, state.last_known_elr) == ((2,), -1, (2,), (2,))
    stage.heartbeat(2)
    assert stage.state("one").leader == 2


def test_a_broker_that_leaves_the_replicas_is_eligible_no_more() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [1, 2]}, configs={"min.insync.replicas": "2"}))
    stage.heartbeat(2, want_fence=True)
    assert stage.state("one").elr == (2,)
    stage.reassign([1])
    state = stage.state("one")
    assert (state.replicas, state.isr, state.elr) == ((1,), (1,), ())
