"""The ElectLeaders API, key 43."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class ElectLeadersRequest(Message, api=43, versions="0-2", flexible="2+"):
    """Elect the preferred leader of partitions, or any live replica if the election may be unclean."""

    class TopicPartitions(Struct):
        topic: String
        partitions: list[Int32]

    election_type: Int8 = since(1)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


class ElectLeadersResponse(Message, api=43, versions="0-2", flexible="2+"):
    """What each election came to."""

    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: Int32
            error_code: Int16
            error_message: NullableString

        topic: String
        partition_result: list[PartitionResult]

    throttle_time_ms: Int32
    error_code: Int16 = since(1)
    replica_election_results: list[ReplicaElectionResult]
