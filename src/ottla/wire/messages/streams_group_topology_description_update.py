"""The StreamsGroupTopologyDescriptionUpdate API, key 93."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class StreamsGroupTopologyDescriptionUpdateRequest(Message, api=93, versions="0", flexible="0+"):
    """A member hands in the description of its streams topology."""

    class TopologyDescriptionNode(Struct):
        name: String
        node_type: Int8
        source_topics: list[String]
        sink_topic: NullableString = None
        stores: list[String]
        successors: list[String]

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: String
        nodes: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"]

    class TopologyDescriptionGlobalStore(Struct):
        source: "StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"
        processor: "StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"

    class TopologyDescription(Struct):
        subtopologies: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology"]
        global_stores: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore"]

    group_id: String
    member_id: String
    topology_epoch: Int32
    topology_description: TopologyDescription


class StreamsGroupTopologyDescriptionUpdateResponse(Message, api=93, versions="0", flexible="0+"):
    """Whether the description was stored."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
