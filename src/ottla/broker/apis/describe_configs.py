"""DescribeConfigs (32): the settings of topics, brokers, groups, client-metrics subscriptions and loggers.

Each resource is answered or refused by itself. v1 brought synonyms (the chain of layers behind a value, the strongest
first), v3 types and documentation. An empty list of keys, or none, asks for all; a broker of the empty name for what is
set on all brokers. Values of secrets are null. A resource is described as often as it is named, but no more than twice
for the same keys (`mentions.py`).
"""

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.broker.config_view import describe
from ottla.broker.mentions import mentions
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.describe import Description
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = Result.DescribeConfigsResourceResult
Synonym = Entry.DescribeConfigsSynonym

_LONG_BYTES = 1 << 10  # a resource that is there is described in hundreds of lines
_KNOWN = frozenset(ConfigType) - {ConfigType.UNKNOWN}


def handle(
    request: DescribeConfigsRequest, version: int, connection: Connection, broker: Broker
) -> DescribeConfigsResponse:
    """Describe every resource; one of an unknown kind spoils the whole request, as in Kafka."""
    for asked in request.resources:
        if asked.resource_type not in _KNOWN:
            message = f"Unexpected resource type UNKNOWN for resource {asked.resource_name}"
            refusal = BrokerError(ErrorCode.INVALID_REQUEST, message)
            return DescribeConfigsResponse(
                results=[
                    _refused(each.resource_type, each.resource_name, refusal) for each in request.resources
                ]
            )
    results = []
    for asked in mentions(
        request.resources,
        lambda each: (each.resource_type, each.resource_name, frozenset(each.configuration_keys or ())),
    ):
        kind, name = asked.resource_type, asked.resource_name
        try:
            found = describe(broker, kind, name, asked.configuration_keys)
        except BrokerError as error:
            results.append(_refused(kind, name, error))
            continue
        entries = [_entry(each, request) for each in found]
        results.append(Result(error_message=None, resource_type=kind, resource_name=name, configs=entries))
    return DescribeConfigsResponse(results=results)


def _refused(kind: int, name: str, error: BrokerError) -> Result:
    return Result(error_code=error.code, error_message=error.message, resource_type=kind, resource_name=name)


def _entry(found: Description, request: DescribeConfigsRequest) -> Entry:
    synonyms = found.synonyms if request.include_synonyms else ()
    return Entry(
        name=found.name,
        value=found.value,
        read_only=found.read_only,
        config_source=found.source,
        is_sensitive=found.sensitive,
        synonyms=[Synonym(name=each.name, value=each.value, source=each.source) for each in synonyms],
        config_type=found.type,
        documentation=found.doc if request.include_documentation else None,
    )


API = Api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    handle,
    long=in_slices(Cut("resources", "results", ("resource_type,resource_name,configuration_keys",)), size=20),
    long_bytes=_LONG_BYTES,
)
