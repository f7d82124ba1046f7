"""Registrations: brokers and controllers say who they are, and are forgotten.

B1  A broker's epoch is the offset of the log's end when it registered; whoever speaks with another one is refused.
B6  A second process of the same id is refused while the first is heard from and its connection stands.
B7  A broker in service is not forgotten: it would go on without a place in the cluster, and nobody would lead what it
    has. Kafka forgets it all the same.
B9  A new incarnation waits until the last one, if that had much, has been fenced piece by piece (B8): it is told to ask
    again, as brokers do.
"""

from collections.abc import Sized
from typing import TYPE_CHECKING

from ottla.controller import fencing
from ottla.controller.session import Sessions
from ottla.controller.view import View
from ottla.metadata.directory import is_reserved
from ottla.metadata.feature import CONTROLLERS_SINCE, DIRECTORIES_SINCE, KRAFT_VERSION, METADATA_VERSION
from ottla.metadata.registration import Broker
from ottla.replicated.decision import Decision, Millis
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.records.metadata import RegisterBrokerRecord, RegisterControllerRecord
from ottla.wire.uuid import uuid_text

if TYPE_CHECKING:
    from ottla.wire.message import Message

NAMED_MAX = 1_000  # of each kind, as all brokers have them in memory


def register_broker(
    view: View, sessions: Sessions, request: BrokerRegistrationRequest, next_offset: int, now: Millis
) -> Decision[BrokerRegistrationResponse]:
    """Take a broker in, fenced until its first heartbeat; its epoch is `next_offset`."""
    broker_id = request.broker_id
    existing = view.image.brokers.get(broker_id)
    _check(view, sessions, request, existing, now)
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs),
    )
    records: list[Message] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += fencing.give_up_partitions(view, broker_id, clean=clean, directories=request.log_dirs)
    records.append(record)
    return Decision(BrokerRegistrationResponse(broker_epoch=record.broker_epoch), tuple(records))


def register_controller(
    view: View, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Remember what a controller of the quorum supports."""
    if view.image.features.metadata_version < CONTROLLERS_SINCE:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)
    _check_counts(request.listeners, request.features)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(), (record,))


def unregister_broker(
    view: View, sessions: Sessions, request: UnregisterBrokerRequest, now: Millis
) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker for good."""
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if not broker.fenced and (broker.id == view.node_id or sessions.is_live(broker.id, now)):
        message = f"Broker ID {broker.id} is in service; it has to be stopped before it is unregistered"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    return Decision(UnregisterBrokerResponse(), tuple(fencing.unregister(view, broker)))


def _check(
    view: View, sessions: Sessions, request: BrokerRegistrationRequest, existing: Broker | None, now: Millis
) -> None:
    if request.cluster_id != view.cluster_id:
        message = f"Expected cluster ID {view.cluster_id}, but got cluster ID {request.cluster_id}"
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    other = existing is not None and existing.incarnation_id != request.incarnation_id
    if other and sessions.is_live(request.broker_id, now):
        message = (
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session."
        )
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
    if (
        existing is not None
        and other
        and not existing.fenced
        and sessions.knows(existing.id)
        and fencing.has_much_to_give_up(view, existing.id)
    ):
        sessions.replaced(existing.id, now)
        message = "The partitions of the broker that was registered with that id are being handed over."
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    _check_counts(request.listeners, request.features, request.log_dirs)
    if view.image.features.metadata_version >= DIRECTORIES_SINCE:
        _check_directories(view, request)
    _check_features(view, request)


def _check_counts(*lists: Sized) -> None:
    if any(len(each) > NAMED_MAX for each in lists):
        raise _invalid_registration(
            f"A registration has at most {NAMED_MAX} listeners, features and directories."
        )


def _check_directories(view: View, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise _invalid_registration("No directories specified in request")
    if any(is_reserved(directory) for directory in directories):
        raise _invalid_registration("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _invalid_registration("Duplicate directory ID in request")
    for other in view.image.brokers.values():
        shared = set(other.directories) & set(directories)
        if other.id != request.broker_id and shared:
            name = uuid_text(min(shared))
            raise _invalid_registration(f"Broker {other.id} is already registered with directory {name}")


def _check_features(view: View, request: BrokerRegistrationRequest) -> None:
    offered = {
        each.name: (each.min_supported_version, each.max_supported_version) for each in request.features
    }
    finalized = {**view.image.features.all(), KRAFT_VERSION: view.kraft_version}
    for name, supported in offered.items():
        _check_feature(name, finalized.get(name, 0), supported)
    if METADATA_VERSION not in offered:
        raise _invalid_registration(f"Request features do not contain '{METADATA_VERSION}'")
    for name in sorted(finalized.keys() - offered.keys()):
        _check_feature(name, finalized[name], (0, 0))


def _check_feature(name: str, level: int, supported: tuple[int, int]) -> None:
    low, high = supported
    if not low <= level <= high:
        message = (
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"The broker wants a version between {low} and {high}, inclusive."
        )
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)


def _invalid_registration(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REGISTRATION, message)
