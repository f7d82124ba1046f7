"""Brokers and controllers say who they are."""

import pytest

from ottla.metadata.feature import SUPPORTED
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.records.metadata import PartitionChangeRecord, RegisterBrokerRecord
from tests.unit.controller.stage import CLUSTER, NO_ELR, Stage, directory, wish

Feature = BrokerRegistrationRequest.Feature
ALL_FEATURES = [
    Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED.items()
]


def without(name: str) -> list[Feature]:
    return [each for each in ALL_FEATURES if each.name != name]


def registration(**changes: object) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=3,
        cluster_id=CLUSTER,
        incarnation_id=bytes([3] * 16),
        features=list(ALL_FEATURES),
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
        (registration(log_dirs=[bytes(16)]), ErrorCode.INVALID_REGISTRATION, "Reserved directory ID"),
        (registration(log_dirs=[directory(3)] * 2), ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID"),
        (registration(log_dirs=[directory(1)]), ErrorCode.INVALID_REGISTRATION, "Broker 1 is already"),
        (registration(is_migrating_zk_broker=True), ErrorCode.BROKER_ID_NOT_REGISTERED, "ZK brokers"),
        (registration(features=[]), ErrorCode.INVALID_REGISTRATION, "do not contain 'metadata.version'"),
        (
            registration(features=without("group.version")),
            ErrorCode.UNSUPPORTED_VERSION,
            "does not support finalized version 1 of group.version",
        ),
        (
            registration(features=without("kraft.version")),
            ErrorCode.UNSUPPORTED_VERSION,
            "version 1 of kraft.version. The broker wants a version between 0 and 0",
        ),
        (
            registration(
                features=[
                    *without("metadata.version"),
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=20),
                ]
            ),
            ErrorCode.UNSUPPORTED_VERSION,
            "of metadata.version. The broker wants a version between 7 and 20",
        ),
    ],
)
def test_registrations_that_cannot_be(
    request_: BrokerRegistrationRequest, code: ErrorCode, words: str
) -> None:
    stage = Stage(1)
    with pytest.raises(BrokerError, match=words) as refused:
        stage.do(lambda controller, now: controller.register_broker(request_, now))
    assert refused.value.code == code


def test_a_feature_that_the_cluster_does_not_use_is_no_obstacle() -> None:
    stage = Stage(1)
    unknown = Feature(name="of.tomorrow", min_supported_version=0, max_supported_version=3)
    request = registration(features=[*ALL_FEATURES, unknown])
    stage.do(lambda controller, now: controller.register_broker(request, now))
    assert stage.image.brokers[3].features["of.tomorrow"] == (0, 3)


def test_registering_again_as_the_same_process_keeps_the_epoch() -> None:
    stage = Stage(1)
    epoch = stage.image.brokers[1].epoch
    assert stage.register(1, incarnation=1) == epoch
    assert stage.image.brokers[1].active


def test_another_process_must_wait_for_the_session_of_the_first() -> None:
    stage = Stage(1, 2, 3)
    with pytest.raises(BrokerError) as refused:
        stage.register(2, incarnation=2)
    assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    stage.wait(10_000, beating=[3])
    assert stage.image.brokers[2].fenced
    stage.register(2, incarnation=2)


def test_another_process_need_not_wait_when_the_connection_of_the_first_has_closed() -> None:
    stage = Stage(1, 2)
    stage.disconnect(2)
    stage.register(2, incarnation=2)
    assert stage.image.brokers[2].fenced


def test_a_process_that_was_not_heard_from_is_replaced_at_once() -> None:
    stage = Stage(1)
    stage.register(2)
    epoch = stage.register(2, incarnation=2)
    assert stage.image.brokers[2].epoch == epoch


@pytest.mark.parametrize("clean", [True, False])
def test_a_sole_replica_keeps_its_partitions_over_a_restart(clean: bool) -> None:
    stage = Stage(1)
    stage.create(wish("one", 2))
    stage.restart(1, clean=clean)
    changes = [record for record in stage.records if isinstance(record, PartitionChangeRecord)]
    assert len(changes) == (0 if clean else 2)
    assert type(stage.records[-1]) is RegisterBrokerRecord
    stage.heartbeat(1)
    state = stage.state("one")
    assert (state.leader, state.isr) == (1, (1,))
    # A log that may have lost its tail must not go on in the epoch in which readers saw that tail.
    assert state.leader_epoch == (0 if clean else 1)


@pytest.mark.parametrize("clean", [True, False])
def test_a_new_incarnation_gives_up_what_others_can_lead(clean: bool) -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3, 1]}, configs={"min.insync.replicas": "3"}))
    stage.restart(2, clean=clean)
    state = stage.state("one")
    assert (state.leader, state.isr) == (3, (3, 1))
    assert state.elr == ((2,) if clean else ()), "only who stopped cleanly has all it had"


def test_without_eligible_leaders_an_unclean_stop_is_like_any_other() -> None:
    stage = Stage(1, 2, 3, features=NO_ELR)
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.restart(2, clean=False)
    assert (stage.state("one").leader, stage.state("one").isr) == (3, (3,))


def unregister(stage: Stage, broker: int) -> None:
    request = UnregisterBrokerRequest(broker_id=broker)
    stage.do(lambda controller, now: controller.unregister_broker(request, now))


def test_a_broker_is_unregistered() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.disconnect(2)
    unregister(stage, 2)
    assert set(stage.image.brokers) == {1}
    assert stage.state("one").leader == 1
    assert stage.controller.deadline != stage.now + 100, "nobody listens for it any more"
    with pytest.raises(BrokerError) as refused:
        unregister(stage, 2)
    assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_was_unregistered_may_lack_what_it_had() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}, configs={"min.insync.replicas": "2"}))
    epoch = stage.image.brokers[2].epoch
    stage.heartbeat(2, want_shut_down=True)
    stage.heartbeat(3)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down
    unregister(stage, 2)
    assert stage.state("one").leader == 3
    stage.register(2, incarnation=2, previous_epoch=epoch)
    assert 2 not in stage.state("one").elr


@pytest.mark.parametrize("broker", [1, 2])
def test_a_broker_in_service_is_not_forgotten(broker: int) -> None:
    stage = Stage(1, 2)
    with pytest.raises(BrokerError, match=f"Broker ID {broker} is in service") as refused:
        unregister(stage, broker)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert set(stage.image.brokers) == {1, 2}


def test_controllers_register_too() -> None:
    stage = Stage()
    request = ControllerRegistrationRequest(controller_id=1, incarnation_id=bytes([1] * 16))
    stage.do(lambda controller, now: controller.register_controller(request, now))
    assert stage.image.controllers[1].incarnation_id == bytes([1] * 16)


def test_an_old_cluster_has_no_place_for_controllers() -> None:
    stage = Stage(features={"metadata.version": 14})
    with pytest.raises(BrokerError) as refused:
        stage.do(lambda controller, now: controller.register_controller(ControllerRegistrationRequest(), now))
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
