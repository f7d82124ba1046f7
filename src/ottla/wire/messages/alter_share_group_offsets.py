"""The AlterShareGroupOffsets API, key 91."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class AlterShareGroupOffsetsRequest(Message, api=91, versions="0", flexible="0+"):
    """Move the start offsets of a share group that has no members."""

    class AlterShareGroupOffsetsRequestTopic(Struct):
        class AlterShareGroupOffsetsRequestPartition(Struct):
            partition_index: Int32
            start_offset: Int64

        topic_name: String
        partitions: list[AlterShareGroupOffsetsRequestPartition]

    group_id: String
    topics: list[AlterShareGroupOffsetsRequestTopic]


class AlterShareGroupOffsetsResponse(Message, api=91, versions="0", flexible="0+"):
    """Whether each start offset was moved."""

    class AlterShareGroupOffsetsResponseTopic(Struct):
        class AlterShareGroupOffsetsResponsePartition(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: NullableString = None

        topic_name: String
        topic_id: Uuid
        partitions: list[AlterShareGroupOffsetsResponsePartition]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    responses: list[AlterShareGroupOffsetsResponseTopic]
