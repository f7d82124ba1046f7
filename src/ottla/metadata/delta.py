"""The delta: what a run of records changes in an image, and the image that results.

D1  A delta only remembers what changed; its cost is that of the records, not of the cluster.
D2  Looking something up in a delta sees the change if there is one, else the image before.
D3  A record that contradicts the state (an unknown topic, a stale epoch) or that is not known stops the replay with
    MetadataError: state is never invented.

What every kind of record does is the table APPLY at the end.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ottla.metadata.access import Acl, DelegationToken, QuotaEntity, ScramCredential, quota_entity
from ottla.metadata.config import ConfigType, Resource
from ottla.metadata.error import MetadataError
from ottla.metadata.feature import (
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSION_MIN,
    Features,
)
from ottla.metadata.image import NO_PRODUCER_IDS, Image
from ottla.metadata.registration import Broker, Controller
from ottla.metadata.topics import RECOVERING, PartitionState, Topic, Topics
from ottla.wire.message import Message
from ottla.wire.records import metadata as kafka
from ottla.wire.uuid import uuid_text

K = TypeVar("K")
V = TypeVar("V")


class TopicChange:
    """One topic that was made or changed; `partitions` holds only those that are new or different."""

    __slots__ = ("before", "id", "name", "partitions")

    def __init__(self, name: str, id: bytes, before: Topic | None) -> None:
        self.name = name
        self.id = id
        self.before = before
        self.partitions: dict[int, PartitionState] = {}

    @property
    def created(self) -> bool:
        """True when the image before did not have the topic."""
        return self.before is None

    def partition(self, index: int) -> PartitionState | None:
        """The partition as it now is."""
        found = self.partitions.get(index)
        return found if found is not None or self.before is None else self.before.partitions.get(index)

    def topic(self) -> Topic:
        """The topic as it now is."""
        if self.before is None:
            return Topic(self.name, self.id, dict(sorted(self.partitions.items())))
        partitions = {**self.before.partitions, **self.partitions}
        if len(partitions) != len(self.before.partitions):
            partitions = dict(sorted(partitions.items()))
        return Topic(self.name, self.id, partitions)


class Delta:
    """Changes on top of an image. In every dict of values, None stands for "removed"."""

    __slots__ = (
        "_names", "acls", "before", "brokers", "configs", "controllers", "features", "next_producer_id", "quotas",
        "removed_topics", "scram", "tokens", "topics", "unclean_elections",
    )  # fmt: skip

    def __init__(self, before: Image) -> None:
        self.before = before
        self.features: dict[str, int] = {}
        self.brokers: dict[int, Broker | None] = {}
        self.controllers: dict[int, Controller | None] = {}
        self.topics: dict[bytes, TopicChange] = {}
        self.removed_topics: dict[bytes, Topic] = {}
        self.configs: dict[Resource, dict[str, str | None]] = {}
        self.quotas: dict[QuotaEntity, dict[str, float | None]] = {}
        self.next_producer_id = NO_PRODUCER_IDS
        self.acls: dict[bytes, Acl | None] = {}
        self.scram: dict[tuple[int, str], ScramCredential | None] = {}
        self.tokens: dict[str, DelegationToken | None] = {}
        self.unclean_elections = 0
        self._names: dict[str, bytes] = {}  # of topics made here

    @property
    def empty(self) -> bool:
        """True when the image after equals the one before."""
        parts = (
            self.features,
            self.brokers,
            self.controllers,
            self.topics,
            self.removed_topics,
            self.configs,
        )
        rest = (self.quotas, self.acls, self.scram, self.tokens)
        return not any(parts) and not any(rest) and self.next_producer_id == NO_PRODUCER_IDS

    def apply(self, record: Message) -> None:
        """Take one record in."""
        try:
            apply = APPLY[type(record)]
        except KeyError:
            raise MetadataError(f"a {type(record).__name__} is no metadata record") from None
        apply(self, record)

    def image(self, offset: int = -1, epoch: int = -1, timestamp_ms: int = 0) -> Image:
        """The image after; it stands at the given place of the log."""
        before = self.before
        next_producer_id = self.next_producer_id
        return Image(
            self._features(),
            _merged(before.brokers, self.brokers),
            _merged(before.controllers, self.controllers),
            self._topics(),
            before.configs.changed(self.configs),
            _merged_maps(before.quotas, self.quotas),
            before.next_producer_id if next_producer_id == NO_PRODUCER_IDS else next_producer_id,
            _merged(before.acls, self.acls),
            _merged(before.scram, self.scram),
            _merged(before.tokens, self.tokens),
            offset,
            epoch,
            timestamp_ms,
        )

    def _features(self) -> Features:
        before = self.before.features
        if not self.features:
            return before
        metadata_version = self.features.get(METADATA_VERSION, before.metadata_version)
        levels = {**before.levels, **self.features}
        levels.pop(METADATA_VERSION, None)
        return Features(metadata_version, {name: level for name, level in levels.items() if level > 0})

    def _topics(self) -> Topics:
        before = self.before.topics
        if not self.topics and not self.removed_topics:
            return before
        by_name, by_id = dict(before.by_name), dict(before.by_id)
        for removed in self.removed_topics.values():
            del by_id[removed.id]
            del by_name[removed.name]
        for change in self.topics.values():
            by_name[change.name] = by_id[change.id] = change.topic()
        return Topics(by_name, by_id)

    def _topic_id(self, name: str) -> bytes | None:
        made = self._names.get(name)
        if made is not None:
            return made
        before = self.before.topics.by_name.get(name)
        return None if before is None or before.id in self.removed_topics else before.id

    def _touch(self, topic_id: bytes) -> TopicChange:
        change = self.topics.get(topic_id)
        if change is None:
            before = self.before.topics.by_id.get(topic_id)
            if before is None or topic_id in self.removed_topics:
                raise MetadataError(f"no topic has the id {uuid_text(topic_id)}")
            change = self.topics[topic_id] = TopicChange(before.name, topic_id, before)
        return change

    def _topic(self, record: kafka.TopicRecord) -> None:
        if self._topic_id(record.name) is not None:
            raise MetadataError(f"the topic {record.name} is made twice")
        self.topics[record.topic_id] = TopicChange(record.name, record.topic_id, None)
        self._names[record.name] = record.topic_id

    def _partition(self, record: kafka.PartitionRecord) -> None:
        self._touch(record.topic_id).partitions[record.partition_id] = PartitionState.of(record)

    def _partition_change(self, record: kafka.PartitionChangeRecord) -> None:
        change = self._touch(record.topic_id)
        state = change.partition(record.partition_id)
        if state is None:
            raise MetadataError(f"{change.name} has no partition {record.partition_id} to change")
        change.partitions[record.partition_id] = state.changed_by(record)
        # Only an election of a replica that was not in sync says so; whatever else is changed, it says nothing of it.
        self.unclean_elections += record.leader_recovery_state == RECOVERING

    def _remove_topic(self, record: kafka.RemoveTopicRecord) -> None:
        change = self._touch(record.topic_id)
        del self.topics[record.topic_id]
        if change.before is not None:
            self.removed_topics[record.topic_id] = change.before
        self._names.pop(change.name, None)
        resource = (int(ConfigType.TOPIC), change.name)
        self.configs.pop(resource, None)
        if known := self.before.configs.of(*resource):
            self.configs[resource] = dict.fromkeys(known)

    def _clear_elr(self, record: kafka.ClearElrRecord) -> None:
        if record.topic_name:
            topic_id = self._topic_id(record.topic_name)
            if topic_id is None:
                raise MetadataError(f"there is no topic {record.topic_name} to clear the eligible leaders of")
            ids = [topic_id]
        else:
            ids = [*(self.before.topics.by_id.keys() - self.removed_topics.keys()), *self._names.values()]
        for topic_id in ids:
            self._clear_topic_elr(topic_id)

    def _clear_topic_elr(self, topic_id: bytes) -> None:
        change = self.topics.get(topic_id)
        before = self.before.topics.by_id.get(topic_id)
        partitions = {**(before.partitions if before else {}), **(change.partitions if change else {})}
        for index, state in partitions.items():
            if state.elr or state.last_known_elr:
                clear = kafka.PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
                self._touch(topic_id).partitions[index] = state.changed_by(clear)

    def _config(self, record: kafka.ConfigRecord) -> None:
        self.configs.setdefault((record.resource_type, record.resource_name), {})[record.name] = record.value

    def _feature(self, record: kafka.FeatureLevelRecord) -> None:
        name, level = record.name, record.feature_level
        if name == METADATA_VERSION and not METADATA_VERSION_MIN <= level <= METADATA_VERSION_MAX:
            known = f"{METADATA_VERSION_MIN} to {METADATA_VERSION_MAX}"
            raise MetadataError(f"the metadata is at metadata.version {level}; this software knows {known}")
        if name != KRAFT_VERSION:
            self.features[name] = level

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self.brokers.get(broker_id, self.before.brokers.get(broker_id))
        if broker is None:
            raise MetadataError(f"broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise MetadataError(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
        return broker

    def _register_broker(self, record: kafka.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = Broker.of(record)

    def _unregister_broker(self, record: kafka.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = None

    def _fence_broker(self, record: kafka.FenceBrokerRecord) -> None:
        self.brokers[record.id] = self._broker(record.id, record.epoch)._replace(fenced=True)

    def _unfence_broker(self, record: kafka.UnfenceBrokerRecord) -> None:
        self.brokers[record.id] = self._broker(record.id, record.epoch)._replace(fenced=False)

    def _broker_change(self, record: kafka.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced:
            broker = broker._replace(fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned=tuple(record.cordoned_log_dirs))
        self.brokers[record.broker_id] = broker

    def _register_controller(self, record: kafka.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = Controller.of(record)

    def _producer_ids(self, record: kafka.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _quota(self, record: kafka.ClientQuotaRecord) -> None:
        self.quotas.setdefault(quota_entity(record), {})[record.key] = None if record.remove else record.value

    def _acl(self, record: kafka.AccessControlEntryRecord) -> None:
        self.acls[record.id] = Acl.of(record)

    def _remove_acl(self, record: kafka.RemoveAccessControlEntryRecord) -> None:
        self.acls[record.id] = None

    def _scram(self, record: kafka.UserScramCredentialRecord) -> None:
        self.scram[record.mechanism, record.name] = ScramCredential.of(record)

    def _remove_scram(self, record: kafka.RemoveUserScramCredentialRecord) -> None:
        self.scram[record.mechanism, record.name] = None

    def _token(self, record: kafka.DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = DelegationToken.of(record)

    def _remove_token(self, record: kafka.RemoveDelegationTokenRecord) -> None:
        self.tokens[record.token_id] = None

    def _nothing(self, record: Message) -> None:
        """Pass over a record that says nothing of the cluster.

        A NoOpRecord only moves the offset. A ZkMigrationStateRecord is left by clusters that once came from
        ZooKeeper, and Kafka 4 passes over it as well.
        """


APPLY: Mapping[type, Callable[[Delta, Any], None]] = {
    kafka.TopicRecord: Delta._topic,
    kafka.PartitionRecord: Delta._partition,
    kafka.PartitionChangeRecord: Delta._partition_change,
    kafka.RemoveTopicRecord: Delta._remove_topic,
    kafka.ClearElrRecord: Delta._clear_elr,
    kafka.ConfigRecord: Delta._config,
    kafka.FeatureLevelRecord: Delta._feature,
    kafka.RegisterBrokerRecord: Delta._register_broker,
    kafka.UnregisterBrokerRecord: Delta._unregister_broker,
    kafka.FenceBrokerRecord: Delta._fence_broker,
    kafka.UnfenceBrokerRecord: Delta._unfence_broker,
    kafka.BrokerRegistrationChangeRecord: Delta._broker_change,
    kafka.RegisterControllerRecord: Delta._register_controller,
    kafka.ProducerIdsRecord: Delta._producer_ids,
    kafka.ClientQuotaRecord: Delta._quota,
    kafka.AccessControlEntryRecord: Delta._acl,
    kafka.RemoveAccessControlEntryRecord: Delta._remove_acl,
    kafka.UserScramCredentialRecord: Delta._scram,
    kafka.RemoveUserScramCredentialRecord: Delta._remove_scram,
    kafka.DelegationTokenRecord: Delta._token,
    kafka.RemoveDelegationTokenRecord: Delta._remove_token,
    kafka.NoOpRecord: Delta._nothing,
    kafka.ZkMigrationStateRecord: Delta._nothing,
}


def _merged(before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return before
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def _merged_maps(
    before: Mapping[K, Mapping[str, V]], changes: Mapping[K, Mapping[str, V | None]]
) -> Mapping[K, Mapping[str, V]]:
    if not changes:
        return before
    return _merged(
        before, {key: _merged(before.get(key, {}), change) or None for key, change in changes.items()}
    )
