"""The AlterClientQuotas API, key 49."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Float64, Int16, Int32, NullableString, String


class AlterClientQuotasRequest(Message, api=49, versions="0-1", flexible="1+"):
    """Set or remove quotas of users, clients or addresses."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String
            entity_name: NullableString

        class OpData(Struct):
            key: String
            value: Float64
            remove: Bool

        entity: list[EntityData]
        ops: list[OpData]

    entries: list[EntryData]
    validate_only: Bool


class AlterClientQuotasResponse(Message, api=49, versions="0-1", flexible="1+"):
    """Whether each entity's quotas were changed."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String
            entity_name: NullableString

        error_code: Int16
        error_message: NullableString
        entity: list[EntityData]

    throttle_time_ms: Int32
    entries: list[EntryData]
