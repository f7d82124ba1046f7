"""UnregisterBroker (64): forget a broker that will not come back."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller."""

    def finish(outcome: UnregisterBrokerResponse | BrokerError) -> UnregisterBrokerResponse:
        if isinstance(outcome, BrokerError):
            return UnregisterBrokerResponse(error_code=outcome.code, error_message=outcome.message)
        return UnregisterBrokerResponse(error_message=None)

    return forward(broker, lambda controller, now: controller.unregister_broker(request, now), finish)


API = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, handle)
