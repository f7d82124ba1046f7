"""AssignReplicasToDirs (73): a broker says in which of its directories its replicas lie (KIP-858)."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


def handle(
    request: AssignReplicasToDirsRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller."""

    def finish(outcome: AssignReplicasToDirsResponse | BrokerError) -> AssignReplicasToDirsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return AssignReplicasToDirsResponse(error_code=outcome.code)

    return forward(broker, lambda controller, now: controller.assign_replicas_to_dirs(request, now), finish)


API = Api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    handle,
    long=in_slices(Cut("directories.topics.partitions", "directories.topics.partitions")),
)
