"""The ShareFetch API, key 78."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, Int64, NullableString, Records, String, Uuid


class ShareFetchRequest(Message, api=78, versions="1-2", flexible="0+"):
    """Acquire records of share partitions, and acknowledge earlier ones along the way."""

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            partition_index: Int32
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: Uuid
        partitions: list[FetchPartition]

    class ForgottenTopic(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = since(2, ignorable=True)
    is_renew_ack: Bool = since(2)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]


class ShareFetchResponse(Message, api=78, versions="1-2", flexible="0+"):
    """The records acquired, with their delivery counts."""

    class ShareFetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: Int32
                leader_epoch: Int32

            class AcquiredRecords(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_count: Int16

            partition_index: Int32
            error_code: Int16
            error_message: NullableString = None
            acknowledge_error_code: Int16
            acknowledge_error_message: NullableString = None
            current_leader: LeaderIdAndEpoch
            records: Records
            acquired_records: list[AcquiredRecords]

        topic_id: Uuid
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: NullableString = None

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    acquisition_lock_timeout_ms: Int32
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]
