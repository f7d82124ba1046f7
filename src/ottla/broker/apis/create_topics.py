"""CreateTopics (19): new topics, decided by the controller and answered once they are committed.

Each topic stands or falls alone. v5 and up hear the partition count, the replication factor and the settings of what
was made, v7 and up the topic's id. `validate_only` decides and records nothing.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Result = CreateTopicsResponse.CreatableTopicResult


def handle(request: CreateTopicsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every topic is told."""

    def finish(outcome: CreateTopicsResponse | BrokerError) -> CreateTopicsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return CreateTopicsResponse(
            topics=[
                Result(name=topic.name, error_code=outcome.code, error_message=outcome.message)
                for topic in request.topics
            ]
        )

    return forward(
        broker, lambda controller, now: controller.create_topics(request, now), finish, request.timeout_ms
    )


API = Api(CreateTopicsRequest, CreateTopicsResponse, handle, long=undivided)
