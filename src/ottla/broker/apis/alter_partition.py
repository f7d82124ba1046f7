"""AlterPartition (56): a leader reports who is in sync, and that it has recovered.

An error of the whole request concerns the broker that asks; each partition has its own besides. v3 names the epoch of
every broker that shall be in sync, so that one which has begun anew is not taken for its predecessor (KIP-903).
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle(request: AlterPartitionRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller."""

    def finish(outcome: AlterPartitionResponse | BrokerError) -> AlterPartitionResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return AlterPartitionResponse(error_code=outcome.code)

    return forward(broker, lambda controller, now: controller.alter_partition(request, version, now), finish)


API = Api(
    AlterPartitionRequest,
    AlterPartitionResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "topics.partitions")),
)
