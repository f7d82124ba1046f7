"""How this node joins its cluster: as a controller, as a broker, and out of the fence."""

from collections.abc import Callable, Sequence

from ottla.controller.controller import Controller
from ottla.metadata.feature import SUPPORTED
from ottla.node.endpoint import Endpoint
from ottla.quorum.quorum import Quorum
from ottla.wire.errors import BrokerError
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest

Refused = Callable[[BrokerError], None]


def register_controller(
    quorum: Quorum[Controller], incarnation_id: bytes, endpoints: Sequence[Endpoint], refused: Refused
) -> None:
    """Tell the cluster where this controller listens and what it supports."""
    request = ControllerRegistrationRequest(
        controller_id=quorum.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            ControllerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.protocol
            )
            for each in endpoints
        ],
        features=[
            ControllerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
    )
    quorum.submit(lambda controller, now: controller.register_controller(request, now), _expect(refused))


def register_broker(
    quorum: Quorum[Controller],
    cluster_id: str,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
    rack: str | None,
    directory_ids: list[bytes],
    previous_epoch: int,
    refused: Refused,
) -> None:
    """Register, and leave the fence with the first heartbeat: the log has been replayed by then."""
    request = BrokerRegistrationRequest(
        broker_id=quorum.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            BrokerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.protocol
            )
            for each in endpoints
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
        rack=rack,
        log_dirs=sorted(directory_ids),
        previous_broker_epoch=previous_epoch,
    )

    def registered(outcome: BrokerRegistrationResponse | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            refused(outcome)
            return
        beat = BrokerHeartbeatRequest(
            broker_id=quorum.node_id,
            broker_epoch=outcome.broker_epoch,
            current_metadata_offset=quorum.committed_offset,
        )
        quorum.submit(lambda controller, now: controller.heartbeat(beat, now), _expect(refused))

    quorum.submit(lambda controller, now: controller.register_broker(request, now), registered)


def _expect(refused: Refused) -> Callable[[object], None]:
    def done(outcome: object) -> None:
        if isinstance(outcome, BrokerError):
            refused(outcome)

    return done
