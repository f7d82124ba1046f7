"""ListPartitionReassignments (46): the moves of replicas between brokers that are under way; null asks for all."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    request: ListPartitionReassignmentsRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the controller, who alone knows what it has decided and not yet committed."""

    def finish(
        outcome: ListPartitionReassignmentsResponse | BrokerError,
    ) -> ListPartitionReassignmentsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return ListPartitionReassignmentsResponse(error_code=outcome.code, error_message=outcome.message)

    return forward(
        broker, lambda controller, now: controller.list_partition_reassignments(request, now), finish
    )


API = Api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    handle,
    long=in_slices(Cut("topics.partition_indexes", "topics.partitions")),
)
