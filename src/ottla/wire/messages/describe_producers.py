"""The DescribeProducers API, key 61."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String


class DescribeProducersRequest(Message, api=61, versions="0", flexible="0+"):
    """Ask which producers are active on partitions."""

    class TopicRequest(Struct):
        name: String
        partition_indexes: list[Int32]

    topics: list[TopicRequest]


class DescribeProducersResponse(Message, api=61, versions="0", flexible="0+"):
    """The producers each partition remembers."""

    class TopicResponse(Struct):
        class PartitionResponse(Struct):
            class ProducerState(Struct):
                producer_id: Int64
                producer_epoch: Int32
                last_sequence: Int32 = -1
                last_timestamp: Int64 = -1
                coordinator_epoch: Int32
                current_txn_start_offset: Int64 = -1

            partition_index: Int32
            error_code: Int16
            error_message: NullableString = None
            active_producers: list[ProducerState]

        name: String
        partitions: list[PartitionResponse]

    throttle_time_ms: Int32
    topics: list[TopicResponse]
