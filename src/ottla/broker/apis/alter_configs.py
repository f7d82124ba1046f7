"""AlterConfigs (33): replace the whole configuration of topics, brokers, groups and client-metrics subscriptions.

What is not named falls back to its default, which is why IncrementalAlterConfigs took its place; old tools still use
it. Loggers cannot be changed this way.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.directories import CORDONED, cordoned_problem
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.metadata.config import ConfigType
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Result = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: AlterConfigsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every resource is told."""
    own = {}
    for number, each in enumerate(request.resources):
        problem = _problem(each, broker)
        if problem is not None:
            own[number] = _refused(each, problem)
    rest = [each for number, each in enumerate(request.resources) if number not in own]
    wish = AlterConfigsRequest(resources=rest, validate_only=request.validate_only)

    def finish(outcome: AlterConfigsResponse | BrokerError) -> AlterConfigsResponse:
        if isinstance(outcome, BrokerError):
            decided = iter([_refused(each, outcome) for each in rest])
        else:
            decided = iter(outcome.responses)
        merged = [own[number] if number in own else next(decided) for number in range(len(request.resources))]
        return AlterConfigsResponse(responses=merged)

    return forward(broker, lambda controller, now: controller.alter_configs(wish, now), finish)


def _problem(resource: AlterConfigsRequest.AlterConfigsResource, broker: Broker) -> BrokerError | None:
    """What only the broker itself can say is wrong with its settings: which directories it has."""
    if resource.resource_type == ConfigType.BROKER and resource.resource_name == str(broker.node_id):
        for each in resource.configs:
            problem = cordoned_problem(broker, each.value or "") if each.name == CORDONED else None
            if problem is not None:
                return BrokerError(ErrorCode.INVALID_REQUEST, problem)
    return None


def _refused(resource: AlterConfigsRequest.AlterConfigsResource, error: BrokerError) -> Result:
    return Result(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


API = Api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    handle,
    long=in_slices(Cut("resources", "responses", ("resource_type,resource_name",)), size=100),
)
