"""A topology: subtopologies with the topics they read, the topics between them, and those that keep their state.

The first member of a group brings it; the others must bring the same, or an older one.
"""

from ottla.groups.member_limits import names_bytes
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.records.streams_group import StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo
_CopartitionGroup = StreamsGroupTopologyValue.Subtopology.CopartitionGroup
_TopicConfig = StreamsGroupTopologyValue.TopicConfig
_Said = StreamsGroupHeartbeatRequest.Topology


class Topology:
    """One topology, as it is kept in a group's record."""

    __slots__ = ("epoch", "size_bytes", "sources", "subtopologies", "topics", "value")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies = {each.subtopology_id: each for each in value.subtopologies}
        # Which subtopology reads a topic, and all topics there must be.
        self.sources = {
            topic: each.subtopology_id for each in value.subtopologies for topic in source_names(each)
        }
        self.topics = frozenset(self.sources) | {
            topic.name for each in value.subtopologies for topic in each.state_changelog_topics
        }
        # How many bytes it holds.
        self.size_bytes = names_bytes(names_of(value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Topology)
            and self.epoch == other.epoch
            and self.subtopologies == other.subtopologies
        )

    def __hash__(self) -> int:
        return hash((self.epoch, frozenset(self.subtopologies)))


def source_names(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def names_of(topology: StreamsGroupTopologyValue | _Said) -> list[str]:
    """Return every name that a topology has in it, as often as it has."""
    names = []
    for each in topology.subtopologies:
        names += [each.subtopology_id, *each.source_topics, *each.repartition_sink_topics]
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            names.append(topic.name)
            for config in topic.topic_configs:
                names += (config.key, config.value)
        for group in each.copartition_groups:
            # Numbers of topics, which take about as long as names.
            names += [""] * (1 + len(group.source_topics) + len(group.repartition_source_topics))
    return names


def said(topology: _Said) -> Topology:
    """Return the topology of a request."""
    ids = [each.subtopology_id for each in topology.subtopologies]
    if topology.epoch < 0 or len(ids) != len(set(ids)):
        # Kafka says no more than this of what no client of its own would send.
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
    subtopologies = [
        Subtopology(
            subtopology_id=each.subtopology_id,
            source_topics=list(each.source_topics),
            source_topic_regex=list(each.source_topic_regex),
            state_changelog_topics=[_info(topic) for topic in each.state_changelog_topics],
            repartition_sink_topics=list(each.repartition_sink_topics),
            repartition_source_topics=[_info(topic) for topic in each.repartition_source_topics],
            copartition_groups=[
                _CopartitionGroup(
                    source_topics=list(group.source_topics),
                    source_topic_regex=list(group.source_topic_regex),
                    repartition_source_topics=list(group.repartition_source_topics),
                )
                for group in each.copartition_groups
            ],
        )
        for each in topology.subtopologies
    ]
    return Topology(StreamsGroupTopologyValue(epoch=topology.epoch, subtopologies=subtopologies))


def _info(topic: StreamsGroupHeartbeatRequest.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[_TopicConfig(key=each.key, value=each.value) for each in topic.topic_configs],
    )
