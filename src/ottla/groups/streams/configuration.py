"""A topology set against the topics there are: how many tasks it comes to, and what is missing or wrong.

N1  A topic between subtopologies has as many partitions as it says, or else as the widest input of the subtopology that
    writes it; topics that are joined have equally many.
N2  A topic that keeps state has as many partitions as its subtopology has tasks.
N3  What is wrong with topics can be mended, and is a status; what is wrong with the topology itself is an error.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ottla.groups.streams.copartition import level
from ottla.groups.streams.flaw import Flaw
from ottla.groups.streams.statuses import StatusCode
from ottla.groups.streams.topology import Subtopology, TopicInfo, Topology, source_names
from ottla.groups.topics import TopicsView
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest

CreatableTopic = CreateTopicsRequest.CreatableTopic
_Config = CreatableTopic.CreatableTopicConfig
_SHOWN_MAX = 3
_DEFAULT_REPLICATION = -1


@dataclass(frozen=True, slots=True)
class Configured:
    """What became of a topology; it is ready when it has no flaw, and has tasks even when topics are missing."""

    tasks: Mapping[str, int] | None
    # Partitions of the topics that belong to the topology, by name.
    counts: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[CreatableTopic, ...] = ()
    flaw: Flaw | None = None


def configure(topology: Topology, topics: TopicsView) -> Configured:
    """Set a topology against topics; BrokerError when the topology makes no sense."""
    try:
        return _configure(topology, topics)
    except Flaw as flaw:
        return Configured(None, flaw=flaw)


def _configure(topology: Topology, topics: TopicsView) -> Configured:
    subtopologies = list(topology.subtopologies.values())
    absent = sorted(
        {topic for each in subtopologies for topic in each.source_topics if topics.find(topic) is None}
    )
    if absent:
        raise Flaw(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_summary(absent)} are missing.")
    counts = _Counts(topics)
    counts.decided.update(_repartition(subtopologies, counts))
    level(subtopologies, counts.decided, counts.of)
    tasks = {}
    for each in sorted(subtopologies, key=lambda one: one.subtopology_id):
        inputs = [counts.of(topic) for topic in source_names(each)]
        if not inputs:
            raise _invalid(f"No source topics found for subtopology {each.subtopology_id}")
        tasks[each.subtopology_id] = max(inputs)
        for topic in each.state_changelog_topics:
            counts.decided[topic.name] = max(inputs)
    internal = {
        topic.name: _creatable(topic, counts.decided)
        for each in subtopologies
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    missing = tuple(_missing(internal, topics))
    flaw = None
    if missing:
        names = _summary([topic.name for topic in missing])
        flaw = Flaw(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}")
    widths = {name: topic.num_partitions for name, topic in internal.items()}
    return Configured(tasks, widths, missing, flaw)


class _Counts:
    """How many partitions topics have, or shall have; what there is goes before what is decided."""

    __slots__ = ("_topics", "decided")

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def find(self, name: str) -> int | None:
        facts = self._topics.find(name)
        return self.decided.get(name) if facts is None else facts.partitions

    def of(self, name: str) -> int:
        count = self.find(name)
        assert count is not None, f"nothing is decided about {name}"
        return count


def _repartition(subtopologies: list[Subtopology], counts: _Counts) -> dict[str, int]:
    """Return the partitions of the topics between subtopologies, each found once those before it are."""
    known = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions != 0
    }
    open_sinks = True
    while open_sinks:
        open_sinks = progress = False
        for each in subtopologies:
            for sink in each.repartition_sink_topics:
                if sink in known:
                    continue
                inputs = [known.get(topic.name) for topic in each.repartition_source_topics]
                inputs += [counts.find(topic) for topic in each.source_topics]
                found = [count for count in inputs if count is not None]
                if found:
                    known[sink] = max(found)
                    progress = True
                else:
                    open_sinks = True
        if open_sinks and not progress:
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
    if any(topic.name not in known for each in subtopologies for topic in each.repartition_source_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because "
            "a repartition source topic is never used as a sink topic."
        )
    return known


def _creatable(topic: TopicInfo, decided: Mapping[str, int]) -> CreatableTopic:
    partitions = topic.partitions or decided[topic.name]
    if partitions < 1:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return CreatableTopic(
        name=topic.name,
        num_partitions=partitions,
        replication_factor=topic.replication_factor or _DEFAULT_REPLICATION,
        configs=[_Config(name=each.key, value=each.value) for each in topic.topic_configs],
    )


def _missing(internal: Mapping[str, CreatableTopic], topics: TopicsView) -> Iterable[CreatableTopic]:
    for name in sorted(internal):
        facts = topics.find(name)
        if facts is None:
            yield internal[name]
        elif facts.partitions != internal[name].num_partitions:
            message = (
                f"Existing topic {name} has different number of partitions: "
                f"expected {internal[name].num_partitions}, found {facts.partitions}"
            )
            raise Flaw(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, message)


def _summary(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_MAX])
    more = len(names) - _SHOWN_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
