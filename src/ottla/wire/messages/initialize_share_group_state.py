"""The InitializeShareGroupState API, key 83."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class InitializeShareGroupStateRequest(Message, api=83, versions="0", flexible="0+"):
    """Create the durable state of share partitions."""

    class InitializeStateData(Struct):
        class PartitionData(Struct):
            partition: Int32
            state_epoch: Int32
            start_offset: Int64

        topic_id: Uuid
        partitions: list[PartitionData]

    group_id: String
    topics: list[InitializeStateData]


class InitializeShareGroupStateResponse(Message, api=83, versions="0", flexible="0+"):
    """Whether each partition's state was created."""

    class InitializeStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: NullableString = None

        topic_id: Uuid
        partitions: list[PartitionResult]

    results: list[InitializeStateResult]
