"""The DeleteRecords API, key 21."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, String


class DeleteRecordsRequest(Message, api=21, versions="0-2", flexible="2+"):
    """Raise the start offset of partitions, dropping what lies before."""

    class DeleteRecordsTopic(Struct):
        class DeleteRecordsPartition(Struct):
            partition_index: Int32
            offset: Int64

        name: String
        partitions: list[DeleteRecordsPartition]

    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


class DeleteRecordsResponse(Message, api=21, versions="0-2", flexible="2+"):
    """The start offset each partition has now."""

    class DeleteRecordsTopicResult(Struct):
        class DeleteRecordsPartitionResult(Struct):
            partition_index: Int32
            low_watermark: Int64
            error_code: Int16

        name: String
        partitions: list[DeleteRecordsPartitionResult]

    throttle_time_ms: Int32
    topics: list[DeleteRecordsTopicResult]
