"""The OffsetDelete API, key 47."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, String


class OffsetDeleteRequest(Message, api=47, versions="0"):
    """Forget committed offsets of a group."""

    class OffsetDeleteRequestTopic(Struct):
        class OffsetDeleteRequestPartition(Struct):
            partition_index: Int32

        name: String
        partitions: list[OffsetDeleteRequestPartition]

    group_id: String
    topics: list[OffsetDeleteRequestTopic]


class OffsetDeleteResponse(Message, api=47, versions="0"):
    """Whether each offset was forgotten."""

    class OffsetDeleteResponseTopic(Struct):
        class OffsetDeleteResponsePartition(Struct):
            partition_index: Int32
            error_code: Int16

        name: String
        partitions: list[OffsetDeleteResponsePartition]

    error_code: Int16
    throttle_time_ms: Int32
    topics: list[OffsetDeleteResponseTopic]
