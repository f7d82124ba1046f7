"""The DescribeClientQuotas API, key 48."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Float64, Int8, Int16, Int32, NullableString, String


class DescribeClientQuotasRequest(Message, api=48, versions="0-1", flexible="1+"):
    """Ask for the quotas that match a filter on users, clients or addresses."""

    class ComponentData(Struct):
        entity_type: String
        match_type: Int8
        match: NullableString

    components: list[ComponentData]
    strict: Bool


class DescribeClientQuotasResponse(Message, api=48, versions="0-1", flexible="1+"):
    """The quotas found, by entity."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String
            entity_name: NullableString

        class ValueData(Struct):
            key: String
            value: Float64

        entity: list[EntityData]
        values: list[ValueData]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    entries: list[EntryData] | None
