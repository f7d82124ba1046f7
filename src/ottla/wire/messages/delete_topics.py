"""The DeleteTopics API, key 20."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, Uuid


class DeleteTopicsRequest(Message, api=20, versions="1-6", flexible="4+"):
    """Delete topics, by name or, since v6, by id."""

    class DeleteTopicState(Struct):
        name: NullableString = None
        topic_id: Uuid

    topics: list[DeleteTopicState] = since(6)
    topic_names: list[String] = since(1, until=5, ignorable=True)
    timeout_ms: Int32


class DeleteTopicsResponse(Message, api=20, versions="1-6", flexible="4+"):
    """What became of each topic to be deleted."""

    class DeletableTopicResult(Struct):
        name: NullableString = since(0, nullable="6+")
        topic_id: Uuid = since(6, ignorable=True)
        error_code: Int16
        error_message: NullableString = since(5, default=None, ignorable=True)

    throttle_time_ms: Int32
    responses: list[DeletableTopicResult]
