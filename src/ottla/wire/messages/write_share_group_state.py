"""The WriteShareGroupState API, key 85."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, NullableString, String, Uuid


class WriteShareGroupStateRequest(Message, api=85, versions="0-1", flexible="0+"):
    """Write changes to the durable state of share partitions."""

    class WriteStateData(Struct):
        class PartitionData(Struct):
            class StateBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_state: Int8
                delivery_count: Int16

            partition: Int32
            state_epoch: Int32
            leader_epoch: Int32
            start_offset: Int64
            delivery_complete_count: Int32 = since(1, default=-1, ignorable=True)
            state_batches: list[StateBatch]

        topic_id: Uuid
        partitions: list[PartitionData]

    group_id: String
    topics: list[WriteStateData]


class WriteShareGroupStateResponse(Message, api=85, versions="0-1", flexible="0+"):
    """Whether each change was written."""

    class WriteStateResult(Struct):
        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: NullableString = None

        topic_id: Uuid
        partitions: list[PartitionResult]

    results: list[WriteStateResult]
