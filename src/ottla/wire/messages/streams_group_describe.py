"""The StreamsGroupDescribe API, key 89."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, Int64, NullableString, String, UInt16


class StreamsGroupDescribeRequest(Message, api=89, versions="0-1", flexible="0+"):
    """Ask for the state, topology and members of streams groups."""

    group_ids: list[String]
    include_authorized_operations: Bool
    include_topology_description: Bool = since(1)


class StreamsGroupDescribeResponse(Message, api=89, versions="0-1", flexible="0+"):
    """Each streams group's topology, members and task assignments."""

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

    class Assignment(Struct):
        active_tasks: list["StreamsGroupDescribeResponse.TaskIds"]
        standby_tasks: list["StreamsGroupDescribeResponse.TaskIds"]
        warmup_tasks: list["StreamsGroupDescribeResponse.TaskIds"]

    class KeyValue(Struct):
        key: String
        value: String

    class TopicInfo(Struct):
        name: String
        partitions: Int32
        replication_factor: Int16
        topic_configs: list["StreamsGroupDescribeResponse.KeyValue"]

    class TopologyDescriptionNode(Struct):
        name: String
        node_type: Int8
        source_topics: list[String]
        sink_topic: NullableString = None
        stores: list[String]
        successors: list[String]

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: String
        nodes: list["StreamsGroupDescribeResponse.TopologyDescriptionNode"]

    class TopologyDescriptionGlobalStore(Struct):
        source: "StreamsGroupDescribeResponse.TopologyDescriptionNode"
        processor: "StreamsGroupDescribeResponse.TopologyDescriptionNode"

    class TopologyDescription(Struct):
        subtopologies: list["StreamsGroupDescribeResponse.TopologyDescriptionSubtopology"]
        global_stores: list["StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore"]

    class DescribedGroup(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: String
                source_topics: list[String]
                repartition_sink_topics: list[String]
                state_changelog_topics: list["StreamsGroupDescribeResponse.TopicInfo"]
                repartition_source_topics: list["StreamsGroupDescribeResponse.TopicInfo"]

            epoch: Int32
            subtopologies: list[Subtopology] | None = None

        class Member(Struct):
            member_id: String
            member_epoch: Int32
            instance_id: NullableString = None
            rack_id: NullableString = None
            client_id: String
            client_host: String
            topology_epoch: Int32
            process_id: String
            user_endpoint: "StreamsGroupDescribeResponse.Endpoint | None" = None
            client_tags: list["StreamsGroupDescribeResponse.KeyValue"]
            task_offsets: list["StreamsGroupDescribeResponse.TaskOffset"]
            task_end_offsets: list["StreamsGroupDescribeResponse.TaskOffset"]
            assignment: "StreamsGroupDescribeResponse.Assignment"
            target_assignment: "StreamsGroupDescribeResponse.Assignment"
            is_classic: Bool

        error_code: Int16
        error_message: NullableString = None
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32
        topology: Topology | None = None
        members: list[Member]
        authorized_operations: Int32 = -(2**31)
        topology_description: "StreamsGroupDescribeResponse.TopologyDescription | None" = since(
            1, default=None
        )
        topology_description_status: Int8 = since(1)
        assignor_name: NullableString = since(1, default=None, ignorable=True)

    throttle_time_ms: Int32
    groups: list[DescribedGroup]
