"""The DeleteShareGroupOffsets API, key 92."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, Uuid


class DeleteShareGroupOffsetsRequest(Message, api=92, versions="0", flexible="0+"):
    """Forget a share group's offsets of some topics."""

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: String

    group_id: String
    topics: list[DeleteShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsResponse(Message, api=92, versions="0", flexible="0+"):
    """Whether each topic's offsets were forgotten."""

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: String
        topic_id: Uuid
        error_code: Int16
        error_message: NullableString = None

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    responses: list[DeleteShareGroupOffsetsResponseTopic]
