"""The AlterPartitionReassignments API, key 45."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String


class AlterPartitionReassignmentsRequest(Message, api=45, versions="0-1", flexible="0+"):
    """Start to move partitions to other replicas, or cancel such moves."""

    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: Int32
            replicas: list[Int32] | None = None

        name: String
        partitions: list[ReassignablePartition]

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = since(1, default=True)
    topics: list[ReassignableTopic]


class AlterPartitionReassignmentsResponse(Message, api=45, versions="0-1", flexible="0+"):
    """Whether each reassignment was accepted."""

    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: NullableString

        name: String
        partitions: list[ReassignablePartitionResponse]

    throttle_time_ms: Int32
    allow_replication_factor_change: Bool = since(1, default=True, ignorable=True)
    error_code: Int16
    error_message: NullableString
    responses: list[ReassignableTopicResponse]
