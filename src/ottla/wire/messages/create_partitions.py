"""The CreatePartitions API, key 37."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String


class CreatePartitionsRequest(Message, api=37, versions="0-3", flexible="2+"):
    """Raise the partition count of topics."""

    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[Int32]

        name: String
        count: Int32
        assignments: list[CreatePartitionsAssignment] | None

    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsResponse(Message, api=37, versions="0-3", flexible="2+"):
    """Whether each topic grew."""

    class CreatePartitionsTopicResult(Struct):
        name: String
        error_code: Int16
        error_message: NullableString = None

    throttle_time_ms: Int32
    results: list[CreatePartitionsTopicResult]
