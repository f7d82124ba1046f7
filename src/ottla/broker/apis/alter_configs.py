"""AlterConfigs (33): replace the whole configuration of topics, brokers, groups and client-metrics subscriptions.

What is not named falls back to its default, which is why IncrementalAlterConfigs took its place; old tools still use
it. Loggers cannot be changed this way.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Result = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: AlterConfigsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every resource is told."""

    def finish(outcome: AlterConfigsResponse | BrokerError) -> AlterConfigsResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return AlterConfigsResponse(
            responses=[
                Result(
                    error_code=outcome.code,
                    error_message=outcome.message,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each in request.resources
            ]
        )

    return forward(broker, lambda controller, now: controller.alter_configs(request, now), finish)


API = Api(AlterConfigsRequest, AlterConfigsResponse, handle)
