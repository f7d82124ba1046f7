"""The topics of this broker's image, as groups see them.

What is known of a topic is worked out once and kept until the topic or the racks of brokers change: a commit asks for
every topic it speaks of, and a topic may have thousands of partitions.
"""

from collections.abc import Iterable

from ottla.broker.broker import Broker
from ottla.groups.topics import TopicFacts
from ottla.metadata.topics import Topic


class GroupTopics:
    """A view that follows the image."""

    __slots__ = ("_broker", "_brokers", "_known")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._brokers: object = None
        self._known: dict[str, tuple[Topic, TopicFacts]] = {}

    @property
    def version(self) -> int:
        """The offset of the image."""
        return self._broker.image.offset

    def find(self, name: str) -> TopicFacts | None:
        """Return the topic of a name."""
        return self._facts(self._broker.image.topics.by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicFacts | None:
        """Return the topic of an id."""
        return self._facts(self._broker.image.topics.by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        """Return the name of every topic."""
        return self._broker.image.topics.by_name

    def _facts(self, topic: Topic | None) -> TopicFacts | None:
        if topic is None:
            return None
        image = self._broker.image
        if image.brokers is not self._brokers or len(self._known) > len(image.topics.by_name):
            self._brokers = image.brokers
            self._known.clear()
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        brokers = image.brokers
        racks = tuple(
            frozenset(rack for node in state.replicas if node in brokers and (rack := brokers[node].rack))
            for _, state in sorted(topic.partitions.items())
        )
        facts = TopicFacts(topic.name, topic.id, len(topic.partitions), racks)
        self._known[topic.name] = topic, facts
        return facts
