"""The Fetch API, key 1."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, NullableRecords, NullableString, String, Uuid


class FetchRequest(Message, api=1, versions="4-18", flexible="12+"):
    """Read record batches of many partitions, waiting for data if asked to; also how replicas follow.

    v13 names topics by id.
    """

    class ReplicaState(Struct):
        replica_id: Int32 = -1
        replica_epoch: Int64 = -1

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition: Int32
            current_leader_epoch: Int32 = since(9, default=-1, ignorable=True)
            fetch_offset: Int64
            last_fetched_epoch: Int32 = since(12, default=-1)
            log_start_offset: Int64 = since(5, default=-1, ignorable=True)
            partition_max_bytes: Int32
            replica_directory_id: Uuid = since(17, tag=0, ignorable=True)
            high_watermark: Int64 = since(18, default=2**63 - 1, tag=1, ignorable=True)

        topic: String = since(4, until=12, ignorable=True)
        topic_id: Uuid = since(13, ignorable=True)
        partitions: list[FetchPartition]

    class ForgottenTopic(Struct):
        topic: String = since(7, until=12, ignorable=True)
        topic_id: Uuid = since(13, ignorable=True)
        partitions: list[Int32]

    cluster_id: NullableString = since(12, default=None, tag=0, ignorable=True)
    replica_id: Int32 = since(4, until=14, default=-1)
    replica_state: ReplicaState | None = since(15, default=None, tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8
    session_id: Int32 = since(7, ignorable=True)
    session_epoch: Int32 = since(7, default=-1, ignorable=True)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = since(7)
    rack_id: String = since(11, ignorable=True)


class FetchResponse(Message, api=1, versions="4-18", flexible="12+"):
    """What each partition had to offer, with its watermarks and aborted transactions."""

    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                epoch: Int32 = -1
                end_offset: Int64 = -1

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = -1
                leader_epoch: Int32 = -1

            class SnapshotId(Struct):
                end_offset: Int64 = -1
                epoch: Int32 = -1

            class AbortedTransaction(Struct):
                producer_id: Int64
                first_offset: Int64

            partition_index: Int32
            error_code: Int16
            high_watermark: Int64
            last_stable_offset: Int64 = -1
            log_start_offset: Int64 = since(5, default=-1, ignorable=True)
            diverging_epoch: EpochEndOffset | None = since(12, default=None, tag=0)
            current_leader: LeaderIdAndEpoch | None = since(12, default=None, tag=1)
            snapshot_id: SnapshotId | None = since(12, default=None, tag=2)
            aborted_transactions: list[AbortedTransaction] | None
            preferred_read_replica: Int32 = since(11, default=-1)
            records: NullableRecords

        topic: String = since(4, until=12, ignorable=True)
        topic_id: Uuid = since(13, ignorable=True)
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: NullableString = None

    throttle_time_ms: Int32
    error_code: Int16 = since(7, ignorable=True)
    session_id: Int32 = since(7)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = since(16, tag=0)
