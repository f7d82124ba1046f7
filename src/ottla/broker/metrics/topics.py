"""Traffic by topic: what Kafka counts as BrokerTopicMetrics.

A topic's counters are those of its partitions here, and go with them. The sums over all topics carry no label and never
fall: what a partition had counted when it went is kept in `_gone`.
"""

from collections.abc import Iterable, Iterator

from ottla.http.metrics.text import Family, counter
from ottla.partition.partition import Partition

_PREFIX = "kafka_server_brokertopicmetrics_"
# The name behind the prefix, the partition's counter, and what it counts.
COUNTERS = (
    ("messagesin_total", "messages_in", "Records appended."),
    ("bytesin_total", "bytes_in", "Bytes appended."),
    ("bytesout_total", "bytes_out", "Bytes read."),
    ("totalproducerequests_total", "produce_requests", "Appends asked for."),
    ("failedproducerequests_total", "produce_failures", "Appends refused."),
    ("totalfetchrequests_total", "fetch_requests", "Reads asked for."),
    ("failedfetchrequests_total", "fetch_failures", "Reads refused."),
)


class TopicTraffic:
    """Sums what partitions count."""

    def __init__(self) -> None:
        self._known: set[Partition] = set()
        self._gone = dict.fromkeys((attribute for _, attribute, _ in COUNTERS), 0)

    def families(self, partitions: Iterable[Partition]) -> Iterator[Family]:
        """The counters by topic, and over all topics."""
        present = set(partitions)
        for partition in self._known - present:
            for attribute in self._gone:
                self._gone[attribute] += getattr(partition, attribute)
        self._known = present
        for name, attribute, help in COUNTERS:
            by_topic: dict[str, int] = {}
            for partition in present:
                by_topic[partition.topic] = by_topic.get(partition.topic, 0) + getattr(partition, attribute)
            family = counter(_PREFIX + name, help)
            family.add(self._gone[attribute] + sum(by_topic.values()))
            for topic in sorted(by_topic):
                family.add(by_topic[topic], topic=topic)
            yield family
