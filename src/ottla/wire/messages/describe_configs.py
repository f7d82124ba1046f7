"""The DescribeConfigs API, key 32."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String


class DescribeConfigsRequest(Message, api=32, versions="1-4", flexible="4+"):
    """Ask for the settings of topics, brokers, groups or telemetry subscriptions."""

    class DescribeConfigsResource(Struct):
        resource_type: Int8
        resource_name: String
        configuration_keys: list[String] | None

    resources: list[DescribeConfigsResource]
    include_synonyms: Bool
    include_documentation: Bool = since(3)


class DescribeConfigsResponse(Message, api=32, versions="1-4", flexible="4+"):
    """Each resource's settings, with their origin and synonyms."""

    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name: String
                value: NullableString
                source: Int8

            name: String
            value: NullableString
            read_only: Bool
            config_source: Int8 = -1
            is_sensitive: Bool
            synonyms: list[DescribeConfigsSynonym]
            config_type: Int8 = since(3, ignorable=True)
            documentation: NullableString = since(3, ignorable=True)

        error_code: Int16
        error_message: NullableString
        resource_type: Int8
        resource_name: String
        configs: list[DescribeConfigsResourceResult]

    throttle_time_ms: Int32
    results: list[DescribeConfigsResult]
