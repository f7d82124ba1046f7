"""The DescribeShareGroupOffsets API, key 90."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String, Uuid


class DescribeShareGroupOffsetsRequest(Message, api=90, versions="0-1", flexible="0+"):
    """Ask for the start offsets of share groups."""

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        class DescribeShareGroupOffsetsRequestTopic(Struct):
            topic_name: String
            partitions: list[Int32]

        group_id: String
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None

    groups: list[DescribeShareGroupOffsetsRequestGroup]


class DescribeShareGroupOffsetsResponse(Message, api=90, versions="0-1", flexible="0+"):
    """The start offset of each share partition."""

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        class DescribeShareGroupOffsetsResponseTopic(Struct):
            class DescribeShareGroupOffsetsResponsePartition(Struct):
                partition_index: Int32
                start_offset: Int64
                leader_epoch: Int32
                lag: Int64 = since(1, default=-1, ignorable=True)
                error_code: Int16
                error_message: NullableString = None

            topic_name: String
            topic_id: Uuid
            partitions: list[DescribeShareGroupOffsetsResponsePartition]

        group_id: String
        topics: list[DescribeShareGroupOffsetsResponseTopic]
        error_code: Int16
        error_message: NullableString = None

    throttle_time_ms: Int32
    groups: list[DescribeShareGroupOffsetsResponseGroup]
