"""Streams groups in `__consumer_offsets`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, NullableString, String, UInt16


class StreamsGroupMetadataKey(Message, api=17, versions="0"):
    """Key of a streams group's epoch."""

    group_id: String


class StreamsGroupMetadataValue(Message, api=17, versions="0", flexible="0+"):
    """A streams group's epoch, the topology it validated and the assignor settings it last used."""

    class LastAssignmentConfig(Struct):
        key: String
        value: String

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = since(0, default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = since(0, tag=1)


class StreamsGroupMemberMetadataKey(Message, api=19, versions="0"):
    """Key of a streams group member's description of itself."""

    group_id: String
    member_id: String


class StreamsGroupMemberMetadataValue(Message, api=19, versions="0", flexible="0+"):
    """A streams group member's description of itself."""

    class Endpoint(Struct):
        host: String
        port: UInt16

    class KeyValue(Struct):
        key: String
        value: String

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]


class StreamsGroupTargetAssignmentMetadataKey(Message, api=20, versions="0"):
    """Key of the epoch of a streams group's target assignment."""

    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(Message, api=20, versions="0", flexible="0+"):
    """The epoch of a streams group's target assignment."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, api=21, versions="0"):
    """Key of one member's share of a streams group's target assignment."""

    group_id: String
    member_id: String


class StreamsGroupTargetAssignmentMemberValue(Message, api=21, versions="0", flexible="0+"):
    """One member's share of a streams group's target assignment, in tasks."""

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class StreamsGroupCurrentMemberAssignmentKey(Message, api=22, versions="0"):
    """Key of what a streams group member holds now."""

    group_id: String
    member_id: String


class StreamsGroupCurrentMemberAssignmentValue(Message, api=22, versions="0", flexible="0+"):
    """The tasks a streams group member holds now, and those it is giving up."""

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]
        assignment_epochs: list[Int32] | None = since(0, tag=0)

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    active_tasks_pending_revocation: list[TaskIds]
    standby_tasks_pending_revocation: list[TaskIds]
    warmup_tasks_pending_revocation: list[TaskIds]


class StreamsGroupTopologyKey(Message, api=23, versions="0"):
    """Key of a streams group's topology."""

    group_id: String


class StreamsGroupTopologyValue(Message, api=23, versions="0", flexible="0+"):
    """A streams group's topology: subtopologies with their topics."""

    class TopicConfig(Struct):
        key: String
        value: String

    class TopicInfo(Struct):
        name: String
        partitions: Int32
        replication_factor: Int16
        topic_configs: list["StreamsGroupTopologyValue.TopicConfig"]

    class Subtopology(Struct):
        class CopartitionGroup(Struct):
            source_topics: list[Int16]
            source_topic_regex: list[Int16]
            repartition_source_topics: list[Int16]

        subtopology_id: String
        source_topics: list[String]
        source_topic_regex: list[String]
        state_changelog_topics: list["StreamsGroupTopologyValue.TopicInfo"]
        repartition_sink_topics: list[String]
        repartition_source_topics: list["StreamsGroupTopologyValue.TopicInfo"]
        copartition_groups: list[CopartitionGroup]

    epoch: Int32
    subtopologies: list[Subtopology]
