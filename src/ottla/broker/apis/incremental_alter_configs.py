"""IncrementalAlterConfigs (44): set, delete, append to and subtract from single settings (KIP-339).

Changes of topics, brokers, groups and client-metrics subscriptions are the controller's to decide, and hold at once on
every broker that has the record. Levels of loggers are this process's own: they are set here and written nowhere.
"""

from ottla.broker import loggers
from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.directories import CORDONED, cordoned_problem
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.metadata.config import ConfigType
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def handle(
    request: IncrementalAlterConfigsRequest, version: int, connection: Connection, broker: Broker
) -> IncrementalAlterConfigsResponse | Pending:
    """Change loggers here, ask the controller for the rest, and answer in the order of the request."""
    own: dict[int, Result] = {}
    rest = []
    for number, each in enumerate(request.resources):
        if each.resource_type == ConfigType.BROKER_LOGGER:
            own[number] = _alter_logger(each, request, broker)
        elif (problem := _problem(each, broker)) is not None:
            own[number] = _result(each, problem)
        else:
            rest.append(each)
    if not rest:
        return IncrementalAlterConfigsResponse(responses=list(own.values()))
    wish = IncrementalAlterConfigsRequest(resources=rest, validate_only=request.validate_only)

    def finish(outcome: IncrementalAlterConfigsResponse | BrokerError) -> IncrementalAlterConfigsResponse:
        if isinstance(outcome, BrokerError):
            decided = iter([_result(each, outcome) for each in rest])
        else:
            decided = iter(outcome.responses)
        merged = [own[number] if number in own else next(decided) for number in range(len(request.resources))]
        return IncrementalAlterConfigsResponse(responses=merged)

    return forward(broker, lambda controller, now: controller.incremental_alter_configs(wish, now), finish)


def _problem(resource: Resource, broker: Broker) -> BrokerError | None:
    """What only the broker itself can say is wrong with its settings: which directories it has."""
    if resource.resource_type != ConfigType.BROKER or resource.resource_name != str(broker.node_id):
        return None
    for change in resource.configs:
        if (
            change.name == CORDONED
            and change.value
            and change.config_operation in (loggers.SET, loggers.APPEND)
        ):
            now = ",".join(broker.settings[CORDONED]) if change.config_operation == loggers.APPEND else ""
            problem = cordoned_problem(broker, f"{now},{change.value}" if now else change.value)
            if problem is not None:
                return BrokerError(ErrorCode.INVALID_REQUEST, problem)
    return None


def _alter_logger(resource: Resource, request: IncrementalAlterConfigsRequest, broker: Broker) -> Result:
    alike = [each for each in request.resources if each.resource_type == ConfigType.BROKER_LOGGER]
    names = [change.name for change in resource.configs]
    try:
        if sum(each.resource_name == resource.resource_name for each in alike) > 1:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if len(set(names)) != len(names):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        kept = [each for each in resource.configs if each.config_operation != loggers.DELETE]
        nulls = [each.name for each in kept if each.value is None]
        if nulls:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
        loggers.alter(resource, broker.node_id, validate_only=request.validate_only)
    except BrokerError as error:
        return _result(resource, error)
    return _result(resource, None)


def _result(resource: Resource, error: BrokerError | None) -> Result:
    return Result(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    handle,
    long=in_slices(Cut("resources", "responses", ("resource_type,resource_name",)), size=100),
)
