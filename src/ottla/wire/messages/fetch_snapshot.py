"""The FetchSnapshot API, key 59."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, Records, String, UInt16, Uuid


class FetchSnapshotRequest(Message, api=59, versions="0-1", flexible="0+"):
    """Read a piece of a snapshot of the metadata log."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: Int64
                epoch: Int32

            partition: Int32
            current_leader_epoch: Int32
            snapshot_id: SnapshotId
            position: Int64
            replica_directory_id: Uuid = since(1, tag=0, ignorable=True)

        name: String
        partitions: list[PartitionSnapshot]

    cluster_id: NullableString = since(0, default=None, tag=0)
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF
    topics: list[TopicSnapshot]


class FetchSnapshotResponse(Message, api=59, versions="0-1", flexible="0+"):
    """A piece of the snapshot, and its whole size."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: Int64
                epoch: Int32

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32
                leader_epoch: Int32

            index: Int32
            error_code: Int16
            snapshot_id: SnapshotId
            current_leader: LeaderIdAndEpoch | None = since(0, default=None, tag=0)
            size: Int64
            position: Int64
            unaligned_records: Records

        name: String
        partitions: list[PartitionSnapshot]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    throttle_time_ms: Int32
    error_code: Int16
    topics: list[TopicSnapshot]
    node_endpoints: list[NodeEndpoint] = since(1, tag=0)
