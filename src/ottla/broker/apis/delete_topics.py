"""DeleteTopics (20): topics by name or, from v6 on, by id, deleted once the controller's word is committed.

Refused as a whole where `delete.topic.enable` is false. What is named twice, in whichever way, is left alone. v5 and up
hear why.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Result = DeleteTopicsResponse.DeletableTopicResult


def handle(request: DeleteTopicsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every topic is told."""

    def finish(outcome: DeleteTopicsResponse | BrokerError) -> DeleteTopicsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        code, message = outcome.code, outcome.message
        named = [Result(name=name, error_code=code, error_message=message) for name in request.topic_names]
        asked = [
            Result(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
            for topic in request.topics
        ]
        return DeleteTopicsResponse(responses=named + asked)

    return forward(
        broker,
        lambda controller, now: controller.delete_topics(request, version, now),
        finish,
        request.timeout_ms,
    )


API = Api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    handle,
    long=in_slices(Cut("topics", "responses", ("name,topic_id",)), Cut("topic_names", "responses", ("",))),
)
