"""The Produce API, key 0."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableRecords, NullableString, String, Uuid


class ProduceRequest(Message, api=0, versions="3-13", flexible="9+"):
    """Append record batches to partitions. v13 names topics by id."""

    class TopicProduceData(Struct):
        class PartitionProduceData(Struct):
            index: Int32
            records: NullableRecords

        name: String = since(3, until=12, ignorable=True)
        topic_id: Uuid = since(13, ignorable=True)
        partition_data: list[PartitionProduceData]

    transactional_id: NullableString = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


class ProduceResponse(Message, api=0, versions="3-13", flexible="9+"):
    """Where each batch landed, or why it did not."""

    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index: Int32
                batch_index_error_message: NullableString = None

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = -1
                leader_epoch: Int32 = -1

            index: Int32
            error_code: Int16
            base_offset: Int64
            log_append_time_ms: Int64 = -1
            log_start_offset: Int64 = since(5, default=-1, ignorable=True)
            record_errors: list[BatchIndexAndErrorMessage] = since(8, ignorable=True)
            error_message: NullableString = since(8, default=None, ignorable=True)
            current_leader: LeaderIdAndEpoch | None = since(10, default=None, tag=0)

        name: String = since(3, until=12, ignorable=True)
        topic_id: Uuid = since(13, ignorable=True)
        partition_responses: list[PartitionProduceResponse]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: NullableString = None

    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32
    node_endpoints: list[NodeEndpoint] = since(10, tag=0)
