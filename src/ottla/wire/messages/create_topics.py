"""The CreateTopics API, key 19."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String, Uuid


class CreateTopicsRequest(Message, api=19, versions="2-7", flexible="5+"):
    """Create topics, by a partition count or by an explicit assignment."""

    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: Int32
            broker_ids: list[Int32]

        class CreatableTopicConfig(Struct):
            name: String
            value: NullableString

        name: String
        num_partitions: Int32
        replication_factor: Int16
        assignments: list[CreatableReplicaAssignment]
        configs: list[CreatableTopicConfig]

    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool


class CreateTopicsResponse(Message, api=19, versions="2-7", flexible="5+"):
    """What became of each topic to be created."""

    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name: String
            value: NullableString
            read_only: Bool
            config_source: Int8 = -1
            is_sensitive: Bool

        name: String
        topic_id: Uuid = since(7, ignorable=True)
        error_code: Int16
        error_message: NullableString
        topic_config_error_code: Int16 = since(5, tag=0, ignorable=True)
        num_partitions: Int32 = since(5, default=-1, ignorable=True)
        replication_factor: Int16 = since(5, default=-1, ignorable=True)
        configs: list[CreatableTopicConfigs] | None = since(5, ignorable=True)

    throttle_time_ms: Int32
    topics: list[CreatableTopicResult]
