"""The ListConfigResources API, key 74."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, String


class ListConfigResourcesRequest(Message, api=74, versions="0-1", flexible="0+"):
    """Ask which resources have settings; v0 knows telemetry subscriptions alone."""

    resource_types: list[Int8] = since(1)


class ListConfigResourcesResponse(Message, api=74, versions="0-1", flexible="0+"):
    """The resources found."""

    class ConfigResource(Struct):
        resource_name: String
        resource_type: Int8 = since(1, default=16, ignorable=True)

    throttle_time_ms: Int32
    error_code: Int16
    config_resources: list[ConfigResource]
