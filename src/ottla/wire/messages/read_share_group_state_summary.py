"""The ReadShareGroupStateSummary API, key 87."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class ReadShareGroupStateSummaryRequest(Message, api=87, versions="0-1", flexible="0+"):
    """Read the start offset and epochs of share partitions, without delivery states."""

    class ReadStateSummaryData(Struct):
        class PartitionData(Struct):
            partition: Int32
            leader_epoch: Int32

        topic_id: Uuid
        partitions: list[PartitionData]

    group_id: String
    topics: list[ReadStateSummaryData]


class ReadShareGroupStateSummaryResponse(Message, api=87, versions="0-1", flexible="0+"):
    """The summary of each partition's state."""

    class ReadStateSummaryResult(Struct):
        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: NullableString = None
            state_epoch: Int32
            leader_epoch: Int32
            start_offset: Int64
            delivery_complete_count: Int32 = since(1, default=-1, ignorable=True)

        topic_id: Uuid
        partitions: list[PartitionResult]

    results: list[ReadStateSummaryResult]
