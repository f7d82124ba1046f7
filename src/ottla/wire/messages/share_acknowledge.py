"""The ShareAcknowledge API, key 79."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, Int64, NullableString, String, Uuid


class ShareAcknowledgeRequest(Message, api=79, versions="1-2", flexible="0+"):
    """Accept, release or reject records acquired earlier."""

    class AcknowledgeTopic(Struct):
        class AcknowledgePartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            partition_index: Int32
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: Uuid
        partitions: list[AcknowledgePartition]

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    is_renew_ack: Bool = since(2)
    topics: list[AcknowledgeTopic]


class ShareAcknowledgeResponse(Message, api=79, versions="1-2", flexible="0+"):
    """Whether each partition's acknowledgements were taken."""

    class ShareAcknowledgeTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: Int32
                leader_epoch: Int32

            partition_index: Int32
            error_code: Int16
            error_message: NullableString = None
            current_leader: LeaderIdAndEpoch

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
    acquisition_lock_timeout_ms: Int32 = since(2, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]
