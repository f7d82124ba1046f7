"""The ReadShareGroupState API, key 84."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, NullableString, String, Uuid


class ReadShareGroupStateRequest(Message, api=84, versions="0", flexible="0+"):
    """Read the durable state of share partitions."""

    class ReadStateData(Struct):
        class PartitionData(Struct):
            partition: Int32
            leader_epoch: Int32

        topic_id: Uuid
        partitions: list[PartitionData]

    group_id: String
    topics: list[ReadStateData]


class ReadShareGroupStateResponse(Message, api=84, versions="0", flexible="0+"):
    """The state of each partition, as batches of delivery states."""

    class ReadStateResult(Struct):
        class PartitionResult(Struct):
            class StateBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_state: Int8
                delivery_count: Int16

            partition: Int32
            error_code: Int16
            error_message: NullableString = None
            state_epoch: Int32
            start_offset: Int64
            state_batches: list[StateBatch]

        topic_id: Uuid
        partitions: list[PartitionResult]

    results: list[ReadStateResult]
