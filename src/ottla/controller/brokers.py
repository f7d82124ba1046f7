"""Brokers: registering, heartbeats, fencing, directories.

    (absent) --register()--> FENCED --heartbeat()--> UNFENCED --heartbeat(want_shut_down)--> CONTROLLED_SHUTDOWN
                                ^                       |                                          |
                                +------- expire() ------+------------- heartbeat() ----------------+

B1  A broker's epoch is the offset of the log's end when it registered; whoever speaks with another one is refused.
B2  A new incarnation leads nothing that another replica could have led in between: its partitions are given up first.
B3  A partition whose only replica comes back is kept as it is, for nobody could have led it meanwhile. After an
    unclean stop its leader epoch is raised, since its log may have lost a tail that consumers have seen. Kafka takes
    the leader away and gives it back in either case; not doing so makes a clean restart free of records, at any
    number of partitions.
"""

from collections.abc import Callable, Sequence

from ottla.controller.election import change_leaders
from ottla.controller.session import Sessions
from ottla.controller.view import View
from ottla.metadata.directory import is_reserved
from ottla.metadata.feature import CONTROLLERS_SINCE, CORDONED_SINCE, DIRECTORIES_SINCE, METADATA_VERSION
from ottla.metadata.registration import Broker
from ottla.metadata.topics import NO_LEADER, PartitionState, Topic
from ottla.replicated.decision import Decision, Millis
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.uuid import uuid_text

FENCE, UNFENCE = 1, -1


def register(
    view: View, sessions: Sessions, request: BrokerRegistrationRequest, next_offset: int, now: Millis
) -> Decision[BrokerRegistrationResponse]:
    """Take a broker in, fenced until its first heartbeat; its epoch is `next_offset`."""
    broker_id = request.broker_id
    existing = view.image.brokers.get(broker_id)
    _check_registration(view, sessions, request, existing, now)
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
        records += _give_up_partitions(view, broker_id, clean=clean)
        sessions.remove(broker_id)
    records.append(record)
    return Decision(BrokerRegistrationResponse(broker_epoch=record.broker_epoch), tuple(records))


def register_controller(
    view: View, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Remember what a controller of the quorum supports."""
    if view.image.features.metadata_version < CONTROLLERS_SINCE:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)
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


def heartbeat(
    view: View, sessions: Sessions, request: BrokerHeartbeatRequest, now: Millis
) -> Decision[BrokerHeartbeatResponse]:
    """Keep a broker's session, and move it between fenced, unfenced and shutting down as it wishes and may."""
    broker_id = request.broker_id
    view.check_epoch(broker_id, request.broker_epoch)
    broker = view.image.brokers[broker_id]
    caught_up = request.current_metadata_offset >= broker.epoch
    records: list[Message] = []
    fenced, shut_down = broker.fenced, False
    if broker.fenced:
        if request.want_shut_down:
            shut_down = True
        elif not request.want_fence and caught_up:
            fenced = False
            records += _unfence(view, broker)
    elif request.want_fence or request.want_shut_down or broker.in_controlled_shutdown:
        leads = any(state.leader == broker_id for _, _, state in view.partitions())
        if broker.in_controlled_shutdown or (request.want_shut_down and not request.want_fence and leads):
            if leads or not broker.in_controlled_shutdown:
                records += _begin_shutdown(view, broker)
            elif sessions.may_shut_down(broker_id, view.image.brokers):
                shut_down = True
        else:
            shut_down = request.want_shut_down
            fenced = True
        if shut_down or fenced:
            fenced = True
            records += _fence(view, broker)
    sessions.touch(broker_id, now, request.current_metadata_offset)
    records += _change_directories(view, broker, request.offline_log_dirs, request.cordoned_log_dirs)
    reply = BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down)
    return Decision(reply, tuple(records))


def fence(view: View, broker_id: int) -> Decision[None]:
    """Fence a broker whose session ran out."""
    return Decision(None, tuple(_fence(view, view.image.brokers[broker_id])))


def unregister(view: View, request: UnregisterBrokerRequest) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker for good."""
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    affected = _where(view, lambda state: broker.id in state.isr or broker.id in state.elr)
    records: list[Message] = [*change_leaders(view, affected, without=broker.id)]
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return Decision(UnregisterBrokerResponse(), tuple(records))


def _check_registration(
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
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if view.image.features.metadata_version >= DIRECTORIES_SINCE:
        _check_directories(view, request)
    _check_features(view, request)


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
    finalized = view.image.features.all()
    for name in (*offered, *(finalized.keys() - offered.keys())):
        low, high = offered.get(name, (0, 0))
        level = finalized.get(name, 0)
        if not low <= level <= high:
            message = (
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive."
            )
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)
    if METADATA_VERSION not in offered:
        raise _invalid_registration(f"Request features do not contain '{METADATA_VERSION}'")


def _give_up_partitions(view: View, broker_id: int, *, clean: bool) -> list[Message]:
    elr = view.image.features.elr
    records: list[Message] = []
    shared: list[tuple[Topic, int]] = []
    for topic, index, state in view.partitions():
        if state.replicas == (broker_id,) and state.isr == (broker_id,) and state.leader == broker_id:
            if not clean:
                records.append(PartitionChangeRecord(topic_id=topic.id, partition_id=index, leader=broker_id))
        elif broker_id in state.isr or (elr and not clean and broker_id in state.elr):
            shared.append((topic, index))
    if elr and not clean:
        records += change_leaders(view, shared, unclean_stop=broker_id)
    else:
        records += change_leaders(view, shared, without=broker_id)
    return records


def _unfence(view: View, broker: Broker) -> list[Message]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    leaderless = _where(view, lambda state: state.leader == NO_LEADER)
    return [change, *change_leaders(view, leaderless, with_broker=broker.id)]


def _fence(view: View, broker: Broker) -> list[Message]:
    affected = _where(view, lambda state: broker.id in state.isr)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*change_leaders(view, affected, without=broker.id), change]


def _begin_shutdown(view: View, broker: Broker) -> list[Message]:
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    affected = _where(view, lambda state: broker.id in state.isr)
    return [*records, *change_leaders(view, affected, without=broker.id)]


def _change_directories(
    view: View, broker: Broker, offline: Sequence[bytes], cordoned: Sequence[bytes] | None
) -> list[Message]:
    records: list[Message] = []
    metadata_version = view.image.features.metadata_version
    gone = [directory for directory in broker.directories if directory in set(offline)]
    if gone and metadata_version >= DIRECTORIES_SINCE:
        affected = _where(view, lambda state: any(directory in gone for directory in state.directories))
        records += change_leaders(view, affected, without=broker.id)
        left = [directory for directory in broker.directories if directory not in gone]
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
        )
    if (
        cordoned is not None
        and metadata_version >= CORDONED_SINCE
        and set(cordoned) != set(broker.cordoned or ())
    ):
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
        )
        records.append(change)
    return records


def _where(view: View, condition: Callable[[PartitionState], bool]) -> list[tuple[Topic, int]]:
    return [(topic, index) for topic, index, state in view.partitions() if condition(state)]


def _invalid_registration(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REGISTRATION, message)
