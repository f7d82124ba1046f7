"""BrokerRegistration (62): a broker that starts tells the controller where it listens, what it supports, what it holds.

It hears its epoch, which it names in all it asks of the controller from then on. v2 brought log directories (KIP-858),
v3 the epoch of the last clean stop (KIP-966), v4 features that begin at level 0.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def handle(
    request: BrokerRegistrationRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller."""

    def finish(outcome: BrokerRegistrationResponse | BrokerError) -> BrokerRegistrationResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return BrokerRegistrationResponse(error_code=outcome.code)

    return forward(broker, lambda controller, now: controller.register_broker(request, now), finish)


API = Api(BrokerRegistrationRequest, BrokerRegistrationResponse, handle)
