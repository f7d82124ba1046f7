"""BrokerHeartbeat (63): a broker says that it lives, how far it has followed the metadata, and what it wants.

It hears whether it is fenced, and whether it may stop. The connection it speaks on is remembered: when that closes, the
controller hears of it at once. v1 brought directories that failed (KIP-858), v2 those that take no new replicas
(KIP-1066).
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(request: BrokerHeartbeatRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; who is refused was not heard."""

    def finish(outcome: BrokerHeartbeatResponse | BrokerError) -> BrokerHeartbeatResponse:
        if isinstance(outcome, BrokerError):
            return BrokerHeartbeatResponse(error_code=outcome.code)
        if not connection.closed:
            broker.contacts.heard(request.broker_id, request.broker_epoch, connection)
        return outcome

    return forward(broker, lambda controller, now: controller.heartbeat(request, now), finish)


API = Api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, handle)
