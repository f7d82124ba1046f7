"""The StreamsGroupHeartbeat API, key 88."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, Int64, NullableString, String, UInt16


class StreamsGroupHeartbeatRequest(Message, api=88, versions="0-1", flexible="0+"):
    """The one request of a streams group member: join with a topology, report tasks, stay, leave."""

    class KeyValue(Struct):
        key: String
        value: String

    class TopicInfo(Struct):
        name: String
        partitions: Int32
        replication_factor: Int16
        topic_configs: list["StreamsGroupHeartbeatRequest.KeyValue"]

    class Endpoint(Struct):
        host: String
        port: UInt16

    class TaskOffset(Struct):
        subtopology_id: String
        partition: Int32
        offset: Int64

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: list[Int16]
                source_topic_regex: list[Int16]
                repartition_source_topics: list[Int16]

            subtopology_id: String
            source_topics: list[String]
            source_topic_regex: list[String]
            state_changelog_topics: list["StreamsGroupHeartbeatRequest.TopicInfo"]
            repartition_sink_topics: list[String]
            repartition_source_topics: list["StreamsGroupHeartbeatRequest.TopicInfo"]
            copartition_groups: list[CopartitionGroup]

        epoch: Int32
        subtopologies: list[Subtopology]

    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: NullableString = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: Bool


class StreamsGroupHeartbeatResponse(Message, api=88, versions="0-1", flexible="0+"):
    """The member's epoch, its tasks and what hinders the group."""

    class Status(Struct):
        status_code: Int8
        status_detail: String

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    class Endpoint(Struct):
        host: String
        port: UInt16

    class EndpointToPartitions(Struct):
        user_endpoint: "StreamsGroupHeartbeatResponse.Endpoint"
        active_partitions: list["StreamsGroupHeartbeatResponse.TopicPartition"]
        standby_partitions: list["StreamsGroupHeartbeatResponse.TopicPartition"]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag_legacy: Int32 = since(0, until=0)
    task_offset_interval_ms: Int32
    acceptable_recovery_lag: Int64 = since(1, default=-1, ignorable=True)
    status: list[Status] | None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: Bool = since(1)
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
