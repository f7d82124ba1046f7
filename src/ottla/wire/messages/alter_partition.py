"""The AlterPartition API, key 56."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, Uuid


class AlterPartitionRequest(Message, api=56, versions="2-3", flexible="0+"):
    """A partition leader proposes a new in-sync set to the controller."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class BrokerState(Struct):
                broker_id: Int32
                broker_epoch: Int64 = -1

            partition_index: Int32
            leader_epoch: Int32
            new_isr: list[Int32] = since(2, until=2)
            new_isr_with_epochs: list[BrokerState] = since(3)
            leader_recovery_state: Int8
            partition_epoch: Int32

        topic_id: Uuid
        partitions: list[PartitionData]

    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: list[TopicData]


class AlterPartitionResponse(Message, api=56, versions="2-3", flexible="0+"):
    """The partition's state after the proposal."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: Int32
            isr: list[Int32]
            leader_recovery_state: Int8
            partition_epoch: Int32

        topic_id: Uuid
        partitions: list[PartitionData]

    throttle_time_ms: Int32
    error_code: Int16
    topics: list[TopicData]
