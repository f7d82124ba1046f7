"""Share partitions in `__share_group_state`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, String, Uuid


class ShareSnapshotKey(Message, api=0, versions="0"):
    """Key of a full state of a share partition."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(Message, api=0, versions="0", flexible="0+"):
    """A share partition's full state."""

    class StateBatch(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(0, default=-1, tag=0)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[StateBatch]


class ShareUpdateKey(Message, api=1, versions="0"):
    """Key of a change to a share partition's state."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(Message, api=1, versions="0", flexible="0+"):
    """A change to a share partition's state since its snapshot."""

    class StateBatch(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(0, default=-1, tag=0)
    state_batches: list[StateBatch]
