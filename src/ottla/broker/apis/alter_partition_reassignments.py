"""AlterPartitionReassignments (45): begin moving replicas between brokers, or give a move up (KIP-455).

A partition without a list of replicas gives its move up. v1 may forbid that the number of replicas changes.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


def handle(
    request: AlterPartitionReassignmentsRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller."""

    def finish(
        outcome: AlterPartitionReassignmentsResponse | BrokerError,
    ) -> AlterPartitionReassignmentsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return AlterPartitionReassignmentsResponse(error_code=outcome.code, error_message=outcome.message)

    return forward(
        broker,
        lambda controller, now: controller.alter_partition_reassignments(request, now),
        finish,
        request.timeout_ms,
    )


API = Api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "responses.partitions")),
)
