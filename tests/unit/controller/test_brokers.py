"""Brokers come, go and fail; leaders follow."""

import pytest

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.unit.controller.stage import CLUSTER, FEATURES, Stage, directory, wish

NO_ELR = {**FEATURES, "eligible.leader.replicas.version": 0}


def test_a_broker_registers_fenced_and_leaves_the_fence_with_a_heartbeat() -> None:
    stage = Stage()
    offset = stage.controller.end_offset
    assert stage.register(1) == offset
    broker = stage.image.brokers[1]
    assert (broker.fenced, broker.epoch, broker.directories) == (True, offset, (directory(1),))
    assert broker.listeners["PLAINTEXT"].host == "host1"
    reply = stage.heartbeat(1)
    assert (reply.is_fenced, reply.is_caught_up, reply.should_shut_down) == (False, True, False)
    assert stage.image.brokers[1].active
    assert stage.heartbeat(1).is_fenced is False
    assert stage.records == []


def test_a_broker_that_lags_stays_fenced() -> None:
    stage = Stage()
    epoch = stage.register(1)
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1)
    reply = stage.do(lambda controller, now: controller.heartbeat(request, now))
    assert (reply.is_fenced, reply.is_caught_up) == (True, False)


def test_registering_again_as_the_same_process_keeps_the_epoch() -> None:
    stage = Stage(1)
    epoch = stage.image.brokers[1].epoch
    assert stage.register(1, incarnation=1) == epoch
    assert stage.image.brokers[1].active


@pytest.mark.parametrize("previous_is_clean", [True, False])
def test_a_sole_replica_keeps_its_partitions_over_a_restart(previous_is_clean: bool) -> None:
    stage = Stage(1)
    stage.create(wish("one", 2))
    previous = stage.image.brokers[1].epoch if previous_is_clean else -1
    stage.register(1, incarnation=2, previous_epoch=previous)
    changes = [record for record in stage.records if isinstance(record, PartitionChangeRecord)]
    assert len(changes) == (0 if previous_is_clean else 2)
    stage.heartbeat(1)
    state = stage.state("one")
    assert (state.leader, state.isr) == (1, (1,))
    # A log that may have lost its tail must not go on in the epoch in which readers saw that tail.
    assert state.leader_epoch == (0 if previous_is_clean else 1)


def test_another_process_must_wait_for_the_session_of_the_first() -> None:
    stage = Stage(1, 2)
    with pytest.raises(BrokerError) as refused:
        stage.register(2, incarnation=2)
    assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    stage.now += 9_000
    stage.register(2, incarnation=2)


def registration(**changes: object) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=3,
        cluster_id=CLUSTER,
        incarnation_id=bytes([3] * 16),
        features=[
            BrokerRegistrationRequest.Feature(name=name, min_supported_version=0, max_supported_version=99)
            for name in FEATURES
        ],
        rack=None,
        log_dirs=[directory(3)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (registration(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID, "Expected cluster ID cluster"),
        (registration(log_dirs=[]), ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
        (
            registration(log_dirs=[bytes(16)]),
            ErrorCode.INVALID_REGISTRATION,
            "Reserved directory ID in request",
        ),
        (registration(log_dirs=[directory(3)] * 2), ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID"),
        (
            registration(log_dirs=[directory(1)]),
            ErrorCode.INVALID_REGISTRATION,
            "Broker 1 is already registered with",
        ),
        (registration(is_migrating_zk_broker=True), ErrorCode.BROKER_ID_NOT_REGISTERED, "ZK brokers"),
        (registration(features=[]), ErrorCode.UNSUPPORTED_VERSION, "does not support finalized version"),
    ],
)
def test_registrations_that_cannot_be(
    request_: BrokerRegistrationRequest, code: ErrorCode, words: str
) -> None:
    stage = Stage(1)
    with pytest.raises(BrokerError, match=words) as refused:
        stage.do(lambda controller, now: controller.register_broker(request_, now))
    assert refused.value.code == code


def test_a_silent_broker_is_fenced_and_loses_its_leaders() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    assert stage.controller.deadline == stage.now + 9_000
    stage.do(lambda controller, now: controller.expire(now + 8_999))
    assert stage.records == []
    stage.do(lambda controller, now: controller.expire(now + 9_000))
    assert stage.image.brokers[2].fenced
    state = stage.state("one")
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), 1)
    assert stage.controller.deadline is None


def test_the_controllers_own_node_is_never_silent() -> None:
    stage = Stage(1)
    assert stage.controller.deadline is None


def test_the_last_replica_that_fails_leaves_no_leader_and_leads_again_when_it_returns() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (-1, (), (2,), (2,))
    stage.heartbeat(2)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (2, (2,), (), ())
    assert (state.leader_epoch, state.leader_recovery_state) == (2, 0)


def test_without_eligible_leaders_the_last_in_sync_replica_stays_in_sync() -> None:
    stage = Stage(1, 2, features=NO_ELR)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    assert (stage.state("one").leader, stage.state("one").isr, stage.state("one").elr) == (-1, (2,), ())
    stage.heartbeat(2)
    assert (stage.state("one").leader, stage.state("one").isr) == (2, (2,))


def test_after_an_unclean_stop_of_the_last_known_leader_the_partition_recovers_from_it() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.heartbeat(3, want_fence=True)
    stage.now += 10_000
    stage.register(2, incarnation=2)
    state = stage.state("one")
    assert (state.leader, state.isr, state.last_known_elr) == (-1, (), (2,))
    stage.heartbeat(2)
    state = stage.state("one")
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)


def test_a_controlled_shutdown_moves_leaders_first() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    reply = stage.heartbeat(2, want_shut_down=True)
    assert (reply.is_fenced, reply.should_shut_down) == (False, False)
    assert stage.image.brokers[2].in_controlled_shutdown
    assert (stage.state("one").leader, stage.state("one").isr) == (1, (1,))
    stage.heartbeat(1)
    reply = stage.heartbeat(2, want_shut_down=True)
    assert (reply.is_fenced, reply.should_shut_down) == (True, True)


def test_an_offline_directory_takes_its_replicas_out() -> None:
    stage = Stage(1)
    stage.register(2, directories=2)
    stage.heartbeat(2)
    stage.create(wish("one", assignments={0: [2, 1]}), wish("two", assignments={0: [2, 1]}))
    assign(stage, 2, directory(2, 0), "one")
    assign(stage, 2, directory(2, 1), "two")
    stage.heartbeat(2, offline=[directory(2, 1)])
    assert stage.image.brokers[2].directories == (directory(2, 0),)
    assert stage.state("one").leader == 2
    assert stage.state("two").leader == 1


def assign(stage: Stage, broker: int, target: bytes, *topics: str, index: int = 0) -> list[int]:
    kind = AssignReplicasToDirsRequest.DirectoryData
    by_name = stage.image.topics.by_name
    ids = [by_name[name].id if name in by_name else bytes([5] * 16) for name in topics]
    partitions = [kind.TopicData.PartitionData(partition_index=index)]
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=stage.image.brokers[broker].epoch,
        directories=[
            kind(id=target, topics=[kind.TopicData(topic_id=id, partitions=partitions) for id in ids])
        ],
    )
    response = stage.do(lambda controller, now: controller.assign_replicas_to_dirs(request, now))
    return [each.partitions[0].error_code for each in response.directories[0].topics]


def test_brokers_say_which_directory_holds_a_replica() -> None:
    stage = Stage(2)
    stage.register(1, directories=2)
    stage.heartbeat(1)
    stage.create(wish("one", assignments={0: [1]}), wish("two", assignments={0: [2]}))
    assert assign(stage, 1, directory(1, 1), "one", "two", "absent") == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert stage.state("one").directories == (directory(1, 1),)
    assert stage.state("one").leader_epoch == 0
    assert assign(stage, 1, directory(1, 1), "one", index=9) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(("broker", "epoch"), [(1, 0), (5, -1)])
def test_whoever_comes_with_an_old_epoch_is_refused(broker: int, epoch: int) -> None:
    stage = Stage(1)
    request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
    with pytest.raises(BrokerError) as refused:
        stage.do(lambda controller, now: controller.allocate_producer_ids(request, now))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_producer_ids_come_in_blocks_that_never_overlap() -> None:
    stage = Stage(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=stage.image.brokers[1].epoch)
    blocks = [
        stage.do(lambda controller, now: controller.allocate_producer_ids(request, now)) for _ in range(2)
    ]
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [(0, 1000), (1000, 1000)]
    assert stage.image.next_producer_id == 2000


def test_a_broker_is_unregistered() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.do(lambda controller, now: controller.unregister_broker(UnregisterBrokerRequest(broker_id=2), now))
    assert set(stage.image.brokers) == {1}
    assert stage.state("one").leader == 1
    with pytest.raises(BrokerError) as refused:
        stage.do(
            lambda controller, now: controller.unregister_broker(UnregisterBrokerRequest(broker_id=2), now)
        )
    assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_controllers_register_too() -> None:
    stage = Stage()
    request = ControllerRegistrationRequest(controller_id=1, incarnation_id=bytes([1] * 16))
    stage.do(lambda controller, now: controller.register_controller(request, now))
    assert stage.image.controllers[1].incarnation_id == bytes([1] * 16)


def report(
    stage: Stage,
    broker: int,
    isr: list[int],
    *,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    recovery: int = 0,
) -> int:
    kind = AlterPartitionRequest.TopicData
    part = kind.PartitionData(
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        leader_recovery_state=recovery,
        new_isr_with_epochs=[kind.PartitionData.BrokerState(broker_id=each) for each in isr],
    )
    request = AlterPartitionRequest(
        broker_id=broker,
        broker_epoch=stage.image.brokers[broker].epoch,
        topics=[kind(topic_id=stage.image.topics.by_name["one"].id, partitions=[part])],
    )
    response = stage.do(lambda controller, now: controller.alter_partition(request, 3, now))
    return response.topics[0].partitions[0].error_code


def test_a_leader_reports_who_is_in_sync() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1, 3]}))
    assert report(stage, 2, [2, 1]) == ErrorCode.NONE
    assert (stage.state("one").isr, stage.state("one").partition_epoch) == ((2, 1), 1)
    assert stage.state("one").leader_epoch == 0
    assert report(stage, 2, [2]) == ErrorCode.INVALID_UPDATE_VERSION
    assert report(stage, 2, [2], partition_epoch=2) == ErrorCode.NOT_CONTROLLER
    assert report(stage, 2, [2], leader_epoch=1, partition_epoch=1) == ErrorCode.NOT_CONTROLLER
    assert report(stage, 1, [2], partition_epoch=1) == ErrorCode.INVALID_REQUEST
    assert report(stage, 2, [1], partition_epoch=1) == ErrorCode.INVALID_REQUEST
    assert report(stage, 2, [2, 9], partition_epoch=1) == ErrorCode.INVALID_REQUEST
    stage.heartbeat(3, want_fence=True)
    assert report(stage, 2, [2, 3], partition_epoch=1) == ErrorCode.INELIGIBLE_REPLICA


def test_a_recovering_leader_recovers() -> None:
    test_stage = Stage(1, 2, 3)
    test_stage.create(wish("one", assignments={0: [2, 3]}))
    test_stage.heartbeat(3, want_fence=True)
    test_stage.now += 10_000
    test_stage.register(2, incarnation=2)
    test_stage.heartbeat(2)
    state = test_stage.state("one")
    assert state.leader_recovery_state == 1
    assert (
        report(test_stage, 2, [2], leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch)
        == 0
    )
    assert test_stage.state("one").leader_recovery_state == 0


def test_unfencing_writes_the_registration_before_the_leaders() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    assert [type(record) for record in stage.records] == [
        PartitionChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    stage.heartbeat(2)
    assert [type(record) for record in stage.records] == [
        BrokerRegistrationChangeRecord,
        PartitionChangeRecord,
    ]
    stage.now += 10_000
    stage.register(2, incarnation=2)
    assert type(stage.records[-1]) is RegisterBrokerRecord
