"""The DeleteShareGroupState API, key 86."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String, Uuid


class DeleteShareGroupStateRequest(Message, api=86, versions="0", flexible="0+"):
    """Delete the durable state of share partitions."""

    class DeleteStateData(Struct):
        class PartitionData(Struct):
            partition: Int32

        topic_id: Uuid
        partitions: list[PartitionData]

    group_id: String
    topics: list[DeleteStateData]


class DeleteShareGroupStateResponse(Message, api=86, versions="0", flexible="0+"):
    """Whether each partition's state was deleted."""

    class DeleteStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: NullableString = None

        topic_id: Uuid
        partitions: list[PartitionResult]

    results: list[DeleteStateResult]
