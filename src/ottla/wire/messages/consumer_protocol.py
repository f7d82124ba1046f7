"""What classic consumers say to each other through JoinGroup and SyncGroup."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int32, NullableBytes, NullableString, String


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """What a classic consumer wants to read, and what it owns already."""

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    topics: list[String]
    user_data: NullableBytes = None
    owned_partitions: list[TopicPartition] = since(1, ignorable=True)
    generation_id: Int32 = since(2, default=-1, ignorable=True)
    rack_id: NullableString = since(3, default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """The partitions a classic consumer was assigned by its group's leader."""

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    assigned_partitions: list[TopicPartition]
    user_data: NullableBytes = None
