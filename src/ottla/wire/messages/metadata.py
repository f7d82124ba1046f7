"""The Metadata API, key 3."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, Uuid


class MetadataRequest(Message, api=3, versions="0-13", flexible="9+"):
    """Ask for the brokers, and for topics with their partitions' leaders. A null list means all topics."""

    class MetadataRequestTopic(Struct):
        topic_id: Uuid = since(10, ignorable=True)
        name: NullableString = since(0, nullable="10+")

    topics: list[MetadataRequestTopic] | None = since(0, nullable="1+")
    allow_auto_topic_creation: Bool = since(4, default=True)
    include_cluster_authorized_operations: Bool = since(8, until=10)
    include_topic_authorized_operations: Bool = since(8)


class MetadataResponse(Message, api=3, versions="0-13", flexible="9+"):
    """The cluster as a client needs to see it: brokers, topics, leaders, replicas."""

    class MetadataResponseBroker(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: NullableString = since(1, default=None, ignorable=True)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code: Int16
            partition_index: Int32
            leader_id: Int32
            leader_epoch: Int32 = since(7, default=-1, ignorable=True)
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            offline_replicas: list[Int32] = since(5, ignorable=True)

        error_code: Int16
        name: NullableString = since(0, nullable="12+")
        topic_id: Uuid = since(10, ignorable=True)
        is_internal: Bool = since(1, ignorable=True)
        partitions: list[MetadataResponsePartition]
        topic_authorized_operations: Int32 = since(8, default=-(2**31))

    throttle_time_ms: Int32 = since(3, ignorable=True)
    brokers: list[MetadataResponseBroker]
    cluster_id: NullableString = since(2, default=None, ignorable=True)
    controller_id: Int32 = since(1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = since(8, until=10, default=-(2**31))
    error_code: Int16 = since(13, ignorable=True)
