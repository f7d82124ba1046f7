"""What brokers and controllers ask of the active controller: registrations, heartbeats, reports, directories, ids."""

from types import SimpleNamespace

import pytest

from ottla.broker.apis.allocate_producer_ids import API as ALLOCATE
from ottla.broker.apis.alter_partition import API as ALTER_PARTITION
from ottla.broker.apis.assign_replicas_to_dirs import API as ASSIGN
from ottla.broker.apis.broker_heartbeat import API as HEARTBEAT
from ottla.broker.apis.broker_registration import API as REGISTER
from ottla.broker.apis.controller_registration import API as REGISTER_CONTROLLER
from ottla.broker.apis.unregister_broker import API as UNREGISTER
from ottla.broker.served import APIS, CONTROLLER_APIS
from ottla.metadata.feature import SUPPORTED
from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

OTHER = 2
DIRECTORY = bytes([9] * 16)


def registration(station, incarnation=1):
    return BrokerRegistrationRequest(
        broker_id=OTHER,
        cluster_id=station.broker.cluster_id,
        incarnation_id=bytes([incarnation] * 16),
        listeners=[
            BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="two", port=1, security_protocol=0)
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
        rack=None,
        log_dirs=[DIRECTORY],
    )


def join(station):
    """Let another broker in, and return its epoch."""
    response = station.ask(REGISTER, registration(station))
    assert response.error_code == ErrorCode.NONE
    assert not beat(station, response.broker_epoch).is_fenced
    return response.broker_epoch


def beat(station, epoch, connection=None, **wishes):
    """Send a heartbeat on a connection of the other broker."""
    station.connection = connection or station.connection
    request = BrokerHeartbeatRequest(
        broker_id=OTHER,
        broker_epoch=epoch,
        current_metadata_offset=station.quorum.committed_offset,
        **wishes,
    )
    return station.ask(HEARTBEAT, request)


def line():
    """A connection."""
    return SimpleNamespace(listener="PLAINTEXT", peer="127.0.0.1", closed=False, on_close=[], held=0, is_corked=False)


def close(connection):
    connection.closed = True
    for callback in connection.on_close:
        callback()


def pulse(station, ms, epoch=None):
    """Let time pass as the controller's host does; with an epoch, the other broker beats."""
    for passed in range(0, ms, 100):
        station.settle(100)
        if epoch is not None and passed % 500 == 0:
            beat(station, epoch)
        station.quorum.tick()
        station.settle()


@pytest.mark.parametrize("version", REGISTER.versions)
def test_a_broker_registers_and_leaves_the_fence(station, version):
    if version < 2:
        response = station.ask(REGISTER, registration(station), version)
        assert response.error_code == ErrorCode.INVALID_REGISTRATION, "it names no directories"
        return
    response = station.ask(REGISTER, registration(station), version)
    assert response.error_code == ErrorCode.NONE
    known = station.broker.image.brokers[OTHER]
    assert (known.epoch, known.fenced, known.directories) == (response.broker_epoch, True, (DIRECTORY,))
    answer = beat(station, response.broker_epoch)
    assert (answer.error_code, answer.is_fenced, answer.is_caught_up) == (0, False, True)
    assert station.broker.alive == {1, OTHER}


def test_a_registration_and_a_heartbeat_are_refused(station):
    request = registration(station)
    request.cluster_id = "other"
    assert station.ask(REGISTER, request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert beat(station, 7).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert station.connection.on_close == [], "who is refused was not heard"


def test_a_broker_whose_connection_closes_is_fenced_soon(station):
    connection = line()
    epoch = join(station)
    beat(station, epoch, connection)
    pulse(station, 6_000, epoch)
    assert len(connection.on_close) == 1
    close(connection)
    pulse(station, 900)
    assert station.broker.image.brokers[OTHER].fenced


def test_a_broker_that_speaks_on_a_new_connection_is_there(station):
    first, second = line(), line()
    epoch = join(station)
    beat(station, epoch, first)
    pulse(station, 6_000, epoch)
    beat(station, epoch, second)
    close(first)
    pulse(station, 900)
    assert not station.broker.image.brokers[OTHER].fenced
    close(second)
    pulse(station, 900)
    assert station.broker.image.brokers[OTHER].fenced


def test_a_successor_need_not_wait_for_the_session_of_a_broker_that_hung_up(station):
    connection = line()
    epoch = join(station)
    beat(station, epoch, connection)
    refused = station.ask(REGISTER, registration(station, incarnation=2))
    assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    close(connection)
    assert station.ask(REGISTER, registration(station, incarnation=2)).error_code == ErrorCode.NONE


def test_a_broker_is_unregistered(station):
    epoch = join(station)
    response = station.ask(UNREGISTER, UnregisterBrokerRequest(broker_id=OTHER))
    assert response.error_code == ErrorCode.INVALID_REQUEST, "it is still there"
    assert beat(station, epoch, want_fence=True).is_fenced
    response = station.ask(UNREGISTER, UnregisterBrokerRequest(broker_id=OTHER))
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert OTHER not in station.broker.image.brokers
    response = station.ask(UNREGISTER, UnregisterBrokerRequest(broker_id=OTHER))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert response.error_message == f"Broker ID {OTHER} is not currently registered"


@pytest.mark.parametrize("version", ALTER_PARTITION.versions)
def test_a_leader_reports(station, version):
    topic = station.create("one")
    kind = AlterPartitionRequest.TopicData
    part = kind.PartitionData(partition_index=0, leader_epoch=0, partition_epoch=0)
    if version < 3:
        part.new_isr = [1]
    else:
        part.new_isr_with_epochs = [kind.PartitionData.BrokerState(broker_id=1)]
    request = AlterPartitionRequest(
        broker_id=1, broker_epoch=station.broker.epoch, topics=[kind(topic_id=topic.id, partitions=[part])]
    )
    response = station.ask(ALTER_PARTITION, request, version)
    assert response.error_code == ErrorCode.NONE
    assert response.topics[0].partitions[0].isr == [1]
    request.broker_epoch += 1
    assert station.ask(ALTER_PARTITION, request, version).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_directories_are_assigned(station):
    topic = station.create("one")
    kind = AssignReplicasToDirsRequest.DirectoryData
    own = station.directories[0].identity.directory_id
    request = AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=station.broker.epoch,
        directories=[
            kind(
                id=own,
                topics=[kind.TopicData(topic_id=topic.id, partitions=[kind.TopicData.PartitionData()])],
            )
        ],
    )
    response = station.ask(ASSIGN, request)
    assert response.error_code == response.directories[0].topics[0].partitions[0].error_code == 0
    request.broker_epoch += 1
    assert station.ask(ASSIGN, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_registers(station):
    request = ControllerRegistrationRequest(controller_id=7, incarnation_id=bytes([7] * 16))
    response = station.ask(REGISTER_CONTROLLER, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert 7 in station.broker.image.controllers


def test_producer_ids_are_handed_out(station):
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=station.broker.epoch)
    first, second = (station.ask(ALLOCATE, request) for _ in range(2))
    assert second.producer_id_start == first.producer_id_start + first.producer_id_len
    request.broker_epoch += 1
    assert station.ask(ALLOCATE, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_each_listener_serves_what_kafka_serves_there():
    for table, listener in ((APIS, "broker"), (CONTROLLER_APIS, "controller")):
        keys = [api.key for api in table]
        assert keys == sorted(set(keys))
        assert all(listener in BY_KEY[key].listeners for key in keys)
