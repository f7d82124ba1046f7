"""ListConfigResources (74): the resources that have settings.

v0 knows client-metrics subscriptions alone (it was ListClientMetricsResources, KIP-714); v1 lists every kind
(KIP-1142). No kinds asked for means all of them. Topics and brokers are listed whether or not anything is set on them,
groups and subscriptions only where something is.
"""

from collections.abc import Iterator

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.metadata.config import ConfigType
from ottla.metadata.image import Image
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

Resource = ListConfigResourcesResponse.ConfigResource

_KINDS = (
    ConfigType.GROUP,
    ConfigType.CLIENT_METRICS,
    ConfigType.BROKER_LOGGER,
    ConfigType.BROKER,
    ConfigType.TOPIC,
)


def handle(
    request: ListConfigResourcesRequest, version: int, connection: Connection, broker: Broker
) -> ListConfigResourcesResponse:
    """List the resources of the kinds asked for."""
    served = (ConfigType.CLIENT_METRICS,) if version == 0 else _KINDS
    asked = set(request.resource_types) or set(served)
    if not asked.issubset(served):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            Resource(resource_name=name, resource_type=kind)
            for kind in served
            if kind in asked
            for name in _names(kind, broker.image, connection.listener)
        ]
    )


def _names(kind: ConfigType, image: Image, listener: str) -> Iterator[str]:
    if kind == ConfigType.TOPIC:
        yield from image.topics.by_name
    elif kind in (ConfigType.BROKER, ConfigType.BROKER_LOGGER):
        yield from (str(node_id) for node_id, broker in image.brokers.items() if listener in broker.listeners)
    else:
        yield from image.configs.names(kind)


API = Api(ListConfigResourcesRequest, ListConfigResourcesResponse, handle)
