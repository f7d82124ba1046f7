"""The ListPartitionReassignments API, key 46."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String


class ListPartitionReassignmentsRequest(Message, api=46, versions="0", flexible="0+"):
    """Ask which partitions are being moved."""

    class ListPartitionReassignmentsTopics(Struct):
        name: String
        partition_indexes: list[Int32]

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class ListPartitionReassignmentsResponse(Message, api=46, versions="0", flexible="0+"):
    """The moves under way: replicas, those being added, those being removed."""

    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index: Int32
            replicas: list[Int32]
            adding_replicas: list[Int32]
            removing_replicas: list[Int32]

        name: String
        partitions: list[OngoingPartitionReassignment]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    topics: list[OngoingTopicReassignment]
