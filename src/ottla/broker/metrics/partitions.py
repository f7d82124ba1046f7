"""Every partition by itself, under Kafka's names and under those of kafka_exporter.

E1  A partition is told by its leader alone and a topic's size by the leader of its partition 0, so that sums over the
    brokers of a cluster count everything once, as with a single kafka_exporter.
E2  A partition in an offline directory keeps its place in the counts and has no numbers of its own; so has one that
    nobody has touched since a clean start.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.http.metrics.text import Family, Number, gauge, label_text
from ottla.metadata.config import ConfigType
from ottla.metadata.topics import PartitionState
from ottla.partition.partition import Partition


class Sight(NamedTuple):
    """A partition as it is here and as the cluster knows it."""

    partition: Partition
    state: PartitionState
    min_isr: int

    @property
    def lags(self) -> bool:
        """Whether a replica is out of sync."""
        return len(self.state.isr) < len(self.state.replicas)


# The name of each family, what it says of a partition, and how it is computed.
GAUGES: tuple[tuple[str, str, Callable[[Sight], Number]], ...] = (
    ("kafka_log_log_size", "Bytes of the partition's log.", lambda s: s.partition.log.size_bytes),
    ("kafka_log_log_logendoffset", "Offset of the next record.", lambda s: s.partition.log.end_offset),
    ("kafka_log_log_logstartoffset", "Offset of the first record.", lambda s: s.partition.log.start_offset),
    ("kafka_log_log_numlogsegments", "Segments of the log.", lambda s: len(s.partition.log.segments)),
    ("kafka_cluster_partition_replicascount", "Replicas.", lambda s: len(s.state.replicas)),
    ("kafka_cluster_partition_insyncreplicascount", "Replicas in sync.", lambda s: len(s.state.isr)),
    ("kafka_cluster_partition_underreplicated", "1 when a replica is out of sync.", lambda s: int(s.lags)),
    (
        "kafka_cluster_partition_underminisr",
        "1 when fewer replicas are in sync than min.insync.replicas.",
        lambda s: int(len(s.state.isr) < s.min_isr),
    ),
    (
        "kafka_cluster_partition_atminisr",
        "1 when exactly min.insync.replicas are in sync.",
        lambda s: int(len(s.state.isr) == s.min_isr),
    ),
    ("kafka_topic_partition_current_offset", "The high watermark.", lambda s: s.partition.high_watermark),
    (
        "kafka_topic_partition_oldest_offset",
        "Offset of the first record.",
        lambda s: s.partition.log.start_offset,
    ),
    ("kafka_topic_partition_leader", "The broker that leads.", lambda s: s.state.leader),
    ("kafka_topic_partition_replicas", "Replicas.", lambda s: len(s.state.replicas)),
    ("kafka_topic_partition_in_sync_replica", "Replicas in sync.", lambda s: len(s.state.isr)),
    (
        "kafka_topic_partition_leader_is_preferred",
        "1 when the first replica leads.",
        lambda s: int(s.state.leader == s.state.replicas[0]),
    ),
    (
        "kafka_topic_partition_under_replicated_partition",
        "1 when a replica is out of sync.",
        lambda s: int(s.lags),
    ),
)


class PartitionGauges:
    """Looks at every partition, and remembers their labels from page to page."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, int], str] = {}

    def families(self, broker: Broker) -> Iterator[Family]:
        """Everything about partitions, each of them first, then how many there are of which kind."""
        states = list(_states(broker))
        sights = [
            Sight(partition, state, min_isr)
            for name, state, min_isr in states
            if state.leader == broker.node_id and (partition := broker.table.partitions.get(name)) is not None
        ]
        labels = self._labels_of(sights)
        for name, help, compute in GAUGES:
            family = gauge(name, help)
            family.samples += [(text, compute(sight)) for text, sight in zip(labels, sights, strict=True)]
            yield family
        yield from _counts(broker, states)
        yield from _topics(broker)

    def _labels_of(self, sights: list[Sight]) -> list[str]:
        known = self._labels
        self._labels = {}
        for partition, _, _ in sights:
            key = (partition.topic, partition.index)
            self._labels[key] = known.get(key) or label_text({"topic": key[0], "partition": key[1]})
        return list(self._labels.values())


State = tuple[tuple[str, int], PartitionState, int]  # name, state, how many replicas must be in sync


def _states(broker: Broker) -> Iterator[State]:
    """Every partition that has a replica here."""
    inherited = str(broker.settings["min.insync.replicas"])
    for topic in broker.image.topics.by_name.values():
        own = broker.image.configs.of(ConfigType.TOPIC, topic.name).get("min.insync.replicas", inherited)
        for index, state in topic.partitions.items():
            if broker.node_id in state.replicas:
                yield (topic.name, index), state, min(int(own), len(state.replicas))


def _counts(broker: Broker, states: list[State]) -> Iterator[Family]:
    prefix = "kafka_server_replicamanager_"
    table = broker.table
    led = [(state, min_isr) for _, state, min_isr in states if state.leader == broker.node_id]
    offline = sum(name not in table.partitions and name not in table.asleep for name, _, _ in states)
    under = sum(len(state.isr) < len(state.replicas) for state, _ in led)
    under_min = sum(len(state.isr) < min_isr for state, min_isr in led)
    at_min = sum(len(state.isr) == min_isr for state, min_isr in led)
    moving = sum(state.reassigning for state, _ in led)
    yield gauge(prefix + "leadercount", "Partitions led here.").add(len(led))
    yield gauge(prefix + "partitioncount", "Replicas here.").add(len(states))
    yield gauge(prefix + "offlinereplicacount", "Replicas in directories that failed.").add(offline)
    yield gauge(prefix + "underreplicatedpartitions", "Led here with a replica out of sync.").add(under)
    yield gauge(prefix + "underminisrpartitioncount", "Led here, under min.insync.replicas.").add(under_min)
    yield gauge(prefix + "atminisrpartitioncount", "Led here, at min.insync.replicas.").add(at_min)
    yield gauge(prefix + "reassigningpartitions", "Led here, with replicas on the move.").add(moving)


def _topics(broker: Broker) -> Iterator[Family]:
    family = gauge("kafka_topic_partitions", "Partitions of the topic.")
    for name, topic in broker.image.topics.by_name.items():
        if topic.partitions[0].leader == broker.node_id:
            family.add(len(topic.partitions), topic=name)
    yield family
