"""Tiered storage in `__remote_log_metadata`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int32, Int64, NullableBytes, String, Uuid


class RemoteLogSegmentMetadataRecord(Message, api=0, versions="0", flexible="0+"):
    """A segment in remote storage, as it was first recorded."""

    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String
            id: Uuid
            partition: Int32

        topic_id_partition: TopicIdPartitionEntry
        id: Uuid

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: Int32
        offset: Int64

    remote_log_segment_id: RemoteLogSegmentIdEntry
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: NullableBytes = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = since(0, tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Message, api=1, versions="0", flexible="0+"):
    """A remote segment's state changed."""

    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String
            id: Uuid
            partition: Int32

        topic_id_partition: TopicIdPartitionEntry
        id: Uuid

    remote_log_segment_id: RemoteLogSegmentIdEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    custom_metadata: NullableBytes = None
    remote_log_segment_state: Int8


class RemotePartitionDeleteMetadataRecord(Message, api=2, versions="0", flexible="0+"):
    """The removal of a partition's remote data moved on."""

    class TopicIdPartitionEntry(Struct):
        name: String
        id: Uuid
        partition: Int32

    topic_id_partition: TopicIdPartitionEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    remote_partition_delete_state: Int8


class RemoteLogSegmentMetadataSnapshotRecord(Message, api=3, versions="0", flexible="0+"):
    """A remote segment, as snapshots of the remote index keep it."""

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: Int32
        offset: Int64

    segment_id: Uuid
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: NullableBytes = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = since(0, tag=0)
