"""The AlterConfigs API, key 33."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String


class AlterConfigsRequest(Message, api=33, versions="0-2", flexible="2+"):
    """Replace all settings of a resource; superseded by IncrementalAlterConfigs."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: String
            value: NullableString

        resource_type: Int8
        resource_name: String
        configs: list[AlterableConfig]

    resources: list[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResponse(Message, api=33, versions="0-2", flexible="2+"):
    """Whether each resource took its new settings."""

    class AlterConfigsResourceResponse(Struct):
        error_code: Int16
        error_message: NullableString
        resource_type: Int8
        resource_name: String

    throttle_time_ms: Int32
    responses: list[AlterConfigsResourceResponse]
