"""CreatePartitions (37): more partitions for topics that exist, placed by the client's word or by the controller's."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(request: CreatePartitionsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every topic is told."""

    def finish(outcome: CreatePartitionsResponse | BrokerError) -> CreatePartitionsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return CreatePartitionsResponse(
            results=[
                Result(name=topic.name, error_code=outcome.code, error_message=outcome.message)
                for topic in request.topics
            ]
        )

    return forward(
        broker, lambda controller, now: controller.create_partitions(request, now), finish, request.timeout_ms
    )


API = Api(CreatePartitionsRequest, CreatePartitionsResponse, handle, long=undivided)
