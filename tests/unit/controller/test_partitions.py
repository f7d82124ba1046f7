"""What leaders report of their partitions."""

import pytest

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from tests.unit.controller.stage import NO_ELR, Stage, wish

MIN_ISR = "min.insync.replicas"


@pytest.fixture
def stage() -> Stage:
    stage = Stage(1, 2, 3, 4, features=NO_ELR)
    stage.create(wish("one", assignments={0: [2, 1, 3]}))
    return stage


def test_a_leader_reports_who_is_in_sync(stage: Stage) -> None:
    answer = stage.alter_partition([2, 1])
    state = stage.state("one")
    assert answer.error_code == ErrorCode.NONE
    assert (state.isr, state.partition_epoch, state.leader_epoch) == ((2, 1), 1, 0)
    told = (answer.leader_id, answer.leader_epoch, answer.partition_epoch, answer.isr)
    assert told == (2, 0, 1, [2, 1])
    assert stage.alter_partition([2, 1, 3]).error_code == ErrorCode.NONE
    assert (stage.state("one").isr, stage.state("one").partition_epoch) == ((2, 1, 3), 2)
    assert stage.alter_partition([2, 1, 3]).error_code == ErrorCode.NONE
    assert stage.records == []
    assert stage.state("one").partition_epoch == 2


@pytest.mark.parametrize(
    ("report", "code"),
    [
        # Those of Kafka's ReplicationControlManagerTest first.
        ({"isr": [2, 1], "broker": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 1], "leader_epoch": 500}, ErrorCode.NOT_CONTROLLER),
        ({"isr": [2, 1], "partition_epoch": 500}, ErrorCode.NOT_CONTROLLER),
        ({"isr": [2, 1, 4]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [1, 3]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 1], "recovery": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2], "recovery": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 1], "leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"isr": [2, 1], "partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": [2, 1, 1]}, ErrorCode.INVALID_REQUEST),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 9]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2], "recovery": 7}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 1], "broker_epochs": {1: 0}}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [2, 1], "broker_epochs": {1: -1}}, ErrorCode.NONE),
    ],
)
def test_reports_that_are_refused(stage: Stage, report: dict[str, object], code: ErrorCode) -> None:
    # So that there are earlier epochs.
    stage.heartbeat(2, want_fence=True)
    stage.heartbeat(2)
    assert stage.alter_partition([1, 2, 3]).error_code == ErrorCode.NONE
    stage.reassign([2, 1, 3])
    stage.heartbeat(1, want_fence=True)
    stage.heartbeat(1)
    assert stage.state("one").leader == 2
    before = stage.state("one")
    assert stage.alter_partition(**report).error_code == code  # type: ignore[arg-type]
    assert (stage.state("one") == before) == (code != ErrorCode.NONE)


def test_only_brokers_in_service_enter(stage: Stage) -> None:
    assert stage.alter_partition([2]).error_code == ErrorCode.NONE
    stage.heartbeat(3, want_fence=True)
    assert stage.alter_partition([2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    stage.heartbeat(3)
    assert stage.alter_partition([2, 3]).error_code == ErrorCode.NONE
    assert stage.alter_partition([2]).error_code == ErrorCode.NONE
    stage.create(wish("two", assignments={0: [3, 4]}))
    stage.heartbeat(3, want_shut_down=True)
    assert stage.alter_partition([2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_that_has_begun_anew_enters_by_its_new_epoch_only(stage: Stage) -> None:
    old = stage.image.brokers[3].epoch
    stage.restart(3, clean=True)
    stage.heartbeat(3)
    late = stage.alter_partition([2, 1, 3], broker_epochs={3: old})
    assert late.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert stage.alter_partition([2, 1, 3]).error_code == ErrorCode.NONE


def test_what_is_not_there_is_not_altered(stage: Stage) -> None:
    kind = AlterPartitionRequest.TopicData
    known = stage.image.topics.by_name["one"].id
    request = AlterPartitionRequest(
        broker_id=2,
        broker_epoch=stage.image.brokers[2].epoch,
        topics=[
            kind(topic_id=known, partitions=[kind.PartitionData(partition_index=5)]),
            kind(topic_id=bytes([7] * 16), partitions=[kind.PartitionData()]),
        ],
    )
    response = stage.do(lambda controller, now: controller.alter_partition(request, 3, now))
    assert [each.partitions[0].error_code for each in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    request.broker_epoch -= 1
    with pytest.raises(BrokerError) as refused:
        stage.do(lambda controller, now: controller.alter_partition(request, 3, now))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_the_version_before_names_no_epochs(stage: Stage) -> None:
    kind = AlterPartitionRequest.TopicData
    request = AlterPartitionRequest(
        broker_id=2,
        broker_epoch=stage.image.brokers[2].epoch,
        topics=[
            kind(
                topic_id=stage.image.topics.by_name["one"].id,
                partitions=[kind.PartitionData(new_isr=[2, 3])],
            )
        ],
    )
    stage.do(lambda controller, now: controller.alter_partition(request, 2, now))
    assert stage.state("one").isr == (2, 3)


def test_who_leaves_the_in_sync_set_below_the_minimum_stays_eligible() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [1, 2, 3]}, configs={MIN_ISR: "2"}))
    stage.alter_partition([1])
    assert (stage.state("one").elr, stage.state("one").last_known_elr) == ((2, 3), ())
    stage.alter_partition([1, 2])
    assert stage.state("one").elr == ()


def test_a_minimum_above_the_number_of_replicas_is_that_number() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [1, 2, 3]}, configs={MIN_ISR: "5"}))
    stage.heartbeat(3, want_fence=True)
    assert stage.state("one").elr == (3,)
    stage.heartbeat(3)
    stage.alter_partition([1, 2, 3])
    assert stage.state("one").elr == ()
