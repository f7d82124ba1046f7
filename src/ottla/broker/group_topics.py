"""The topics of this broker's image, as groups see them."""

from collections.abc import Iterable

from ottla.broker.broker import Broker
from ottla.groups.topics import TopicFacts
from ottla.metadata.topics import Topic


class GroupTopics:
    """A view that follows the image."""

    __slots__ = ("_broker",)

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

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
        brokers = self._broker.image.brokers
        racks = tuple(
            frozenset(rack for node in state.replicas if node in brokers and (rack := brokers[node].rack))
            for _, state in sorted(topic.partitions.items())
        )
        return TopicFacts(topic.name, topic.id, len(topic.partitions), racks)
