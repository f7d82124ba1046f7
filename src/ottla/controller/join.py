"""How a node that leads the quorum makes itself a broker: it registers both of its roles, and unfences itself.

Nothing goes over the wire for it: the same commands that other nodes send are submitted in process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ottla.controller.controller import Controller
from ottla.metadata.feature import SUPPORTED
from ottla.metadata.registration import Endpoint
from ottla.replicated.decision import Decision, Millis
from ottla.wire.errors import BrokerError
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest

R = TypeVar("R")


class Submit(Protocol):
    """The way to the active controller."""

    def __call__(
        self, decide: Callable[[Controller, Millis], Decision[R]], done: Callable[[R | BrokerError], None]
    ) -> None:
        """Let the controller decide, and call back once that is committed."""
        ...


@dataclass(frozen=True, slots=True)
class Node:
    """What a node says of itself. `previous_broker_epoch` is that of its last life if that ended cleanly, else -1."""

    id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...]
    directories: tuple[bytes, ...]
    controller_listeners: tuple[Endpoint, ...] = ()
    rack: str | None = None
    previous_broker_epoch: int = -1
    cordoned: tuple[bytes, ...] = field(default=())


def register(submit: Submit, node: Node, done: Callable[[int | BrokerError], None]) -> None:
    """Register a node as controller and as broker; `done` gets its broker epoch, and it is fenced from then on."""

    def registered(outcome: BrokerRegistrationResponse | BrokerError) -> None:
        done(outcome if isinstance(outcome, BrokerError) else outcome.broker_epoch)

    controller, broker = _controller_request(node), _broker_request(node)
    submit(lambda leader, now: leader.register_controller(controller, now), _nobody)
    submit(lambda leader, now: leader.register_broker(broker, now), registered)


def unfence(submit: Submit, node: Node, done: Callable[[BrokerHeartbeatResponse | BrokerError], None]) -> None:
    """Unfence a registered node; call it once the node's partitions are open and its listeners will be."""

    def heartbeat(controller: Controller, now: Millis) -> Decision[BrokerHeartbeatResponse]:
        registration = controller.image.brokers[node.id]
        request = BrokerHeartbeatRequest(
            broker_id=node.id,
            broker_epoch=registration.epoch,
            current_metadata_offset=controller.end_offset - 1,
            cordoned_log_dirs=list(node.cordoned),
        )
        return controller.heartbeat(request, now)

    submit(heartbeat, done)


def _controller_request(node: Node) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node.id,
        incarnation_id=node.incarnation_id,
        listeners=[
            ControllerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in node.controller_listeners
        ],
        features=[
            ControllerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
    )


def _broker_request(node: Node) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=node.id,
        cluster_id=node.cluster_id,
        incarnation_id=node.incarnation_id,
        listeners=[
            BrokerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in node.listeners
        ],
        features=[
            BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        rack=node.rack,
        log_dirs=list(node.directories),
        previous_broker_epoch=node.previous_broker_epoch,
    )


def _nobody(_: object) -> None:
    """Receive a reply nobody waits for."""
