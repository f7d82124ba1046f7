"""The IncrementalAlterConfigs API, key 44."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String


class IncrementalAlterConfigsRequest(Message, api=44, versions="0-1", flexible="1+"):
    """Set, delete, append to or subtract from single settings."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: String
            config_operation: Int8
            value: NullableString

        resource_type: Int8
        resource_name: String
        configs: list[AlterableConfig]

    resources: list[AlterConfigsResource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Message, api=44, versions="0-1", flexible="1+"):
    """Whether each resource took its changes."""

    class AlterConfigsResourceResponse(Struct):
        error_code: Int16
        error_message: NullableString
        resource_type: Int8
        resource_name: String

    throttle_time_ms: Int32
    responses: list[AlterConfigsResourceResponse]
