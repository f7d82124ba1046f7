"""ControllerRegistration (70): a controller tells the active one where it listens and what it supports (KIP-919)."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def handle(
    request: ControllerRegistrationRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller."""

    def finish(outcome: ControllerRegistrationResponse | BrokerError) -> ControllerRegistrationResponse:
        if isinstance(outcome, BrokerError):
            return ControllerRegistrationResponse(error_code=outcome.code, error_message=outcome.message)
        return ControllerRegistrationResponse(error_message=None)

    return forward(broker, lambda controller, now: controller.register_controller(request, now), finish)


API = Api(ControllerRegistrationRequest, ControllerRegistrationResponse, handle)
