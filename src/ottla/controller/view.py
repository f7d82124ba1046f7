"""What a decision may look at: the image so far, its census, this node's settings, and a source of chance."""

from collections.abc import Callable, Mapping, Sized

from ottla.controller.census import Census
from ottla.controller.names import Collisions
from ottla.metadata.config import DEFAULT_BROKER, ConfigType
from ottla.metadata.directory import MIGRATING, UNASSIGNED
from ottla.metadata.fold import Change
from ottla.metadata.image import Image
from ottla.metadata.registration import Broker
from ottla.metadata.settings.definition import Value
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import TOPIC, topic_defaults
from ottla.metadata.topics import PartitionState, Topic
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.entropy import Entropy

RECORDS_MAX = 10_000  # that one user's command may ask for


def check_size(records: Sized) -> None:
    """Refuse a command that makes more records than one may, before it makes still more."""
    if len(records) > RECORDS_MAX:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class View:
    """The cluster as the active controller sees it: with every record that was appended, committed or not."""

    __slots__ = (
        "_defaults", "_defaults_of", "_layers", "_rules", "_rules_of", "_values", "census", "cluster_id", "collisions",
        "entropy", "image", "kraft_version", "node_id", "raise_kraft_version",
    )  # fmt: skip

    def __init__(
        self,
        image: Image,
        *,
        node_id: int,
        cluster_id: str,
        values: BrokerValues,
        entropy: Entropy,
        kraft_version: int,
        raise_kraft_version: Callable[[int, bool], None] | None = None,
    ) -> None:
        self.image = image
        self.census = Census(image)
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.entropy = entropy
        self.kraft_version = kraft_version
        # Level, and whether it is only asked whether that could be done; the quorum refuses by a BrokerError.
        self.raise_kraft_version = raise_kraft_version
        self.collisions = Collisions(image.topics.by_name)
        self._values = values
        self._layers: tuple[Mapping[str, str], Mapping[str, str]] | None = None
        self._defaults: Mapping[str, Value] = {}
        self._defaults_of: BrokerValues | None = None
        self._rules: dict[str, tuple[int, bool]] = {}
        self._rules_of: tuple[object, object] | None = None  # settings of topics and of brokers

    def follow(self, change: Change) -> None:
        """Take a step from one image to the next."""
        delta = change.delta
        self.census.follow(delta)
        for removed in delta.removed_topics.values():
            self.collisions.remove(removed.name)
        for made in delta.topics.values():
            if made.created:
                self.collisions.add(made.name)
        self.image = change.image

    @property
    def values(self) -> BrokerValues:
        """The settings of this node, under the dynamic ones of the image."""
        configs = self.image.configs
        layers = (
            configs.of(ConfigType.BROKER, DEFAULT_BROKER),
            configs.of(ConfigType.BROKER, str(self.node_id)),
        )
        known = self._layers
        if known is None or known[0] is not layers[0] or known[1] is not layers[1]:
            self._values = self._values.with_dynamic(*layers)
            self._layers = layers
        return self._values

    @property
    def topic_defaults(self) -> Mapping[str, Value]:
        """What a topic inherits from this node's settings."""
        if self._defaults_of is not self.values:
            self._defaults_of = self._values
            self._defaults = topic_defaults(self._values)
        return self._defaults

    def number(self, name: str) -> int:
        """The value of a broker setting that is a number."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def min_isr(self, topic: Topic) -> int:
        """How many replicas must be in sync for `topic`; never more than it has."""
        return min(self._rules_for(topic.name)[0], len(topic.partitions[0].replicas))

    def unclean_elections(self, topic: str) -> bool:
        """True when a replica out of sync may lead this topic."""
        return self._rules_for(topic)[1]

    def _rules_for(self, topic: str) -> tuple[int, bool]:
        """What elections ask of a topic's settings, worked out once while the settings stay."""
        configs = self.image.configs
        topics, brokers = configs.of_kind(ConfigType.TOPIC), configs.of_kind(ConfigType.BROKER)
        if self._rules_of is None or self._rules_of[0] is not topics or self._rules_of[1] is not brokers:
            self._rules_of = topics, brokers
            self._rules = {}
        rules = self._rules.get(topic)
        if rules is None:
            min_isr = self._topic_value(topic, "min.insync.replicas")
            assert isinstance(min_isr, int)
            unclean = bool(self._topic_value(topic, "unclean.leader.election.enable"))
            rules = self._rules[topic] = (min_isr, unclean)
        return rules

    def _topic_value(self, topic: str, name: str) -> Value:
        own = self.image.configs.of(ConfigType.TOPIC, topic).get(name)
        return self.topic_defaults[name] if own is None else TOPIC[name].parse(own)

    def usable_brokers(self) -> list[Broker]:
        """The brokers that may be given new replicas, fenced ones among them; not those on their way out."""
        return [
            broker
            for broker in self.image.brokers.values()
            if broker.has_room and (broker.fenced or not broker.in_controlled_shutdown)
        ]

    def is_active(self, broker_id: int) -> bool:
        """True when a broker is registered, not fenced and not on its way out."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active

    def can_lead(self, broker_id: int, state: PartitionState) -> bool:
        """True when a broker is active and the directory of its replica works."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active and broker.has_online(state.directory_of(broker_id))

    def default_directory(self, broker_id: int) -> bytes:
        """Where a new replica on this broker goes; UNASSIGNED when the broker has to choose."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return UNASSIGNED
        if not broker.directories:
            return MIGRATING
        return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED

    def check_epoch(self, broker_id: int, epoch: int) -> None:
        """Refuse a broker that is not the one registered."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise BrokerError(
                ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
            )
        if broker.epoch != epoch:
            message = f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
            raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, message)
