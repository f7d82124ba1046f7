"""AllocateProducerIds (67): a broker asks for the next block of producer ids."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(
    request: AllocateProducerIdsRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller."""

    def finish(outcome: AllocateProducerIdsResponse | BrokerError) -> AllocateProducerIdsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return AllocateProducerIdsResponse(error_code=outcome.code)

    return forward(broker, lambda controller, now: controller.allocate_producer_ids(request, now), finish)


API = Api(AllocateProducerIdsRequest, AllocateProducerIdsResponse, handle)
