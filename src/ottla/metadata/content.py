"""An image as records, in the order in which Kafka writes a snapshot.

Features come first, since metadata.version says how to read the rest; a topic comes before its partitions.
"""

from collections.abc import Iterator

from ottla.metadata.access import quota_record
from ottla.metadata.feature import METADATA_VERSION
from ottla.metadata.image import NO_PRODUCER_IDS, Image
from ottla.wire.message import Message
from ottla.wire.records.metadata import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord, TopicRecord


def records_of(image: Image) -> Iterator[Message]:
    """Every record needed to make `image` from nothing."""
    yield from feature_records(image.features.all())
    for broker in image.brokers.values():
        yield broker.record()
    for controller in image.controllers.values():
        yield controller.record()
    for topic in image.topics.by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for index, state in topic.partitions.items():
            yield state.record(topic.id, index)
    for (kind, resource), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    for entity, quotas in image.quotas.items():
        for key, quota in quotas.items():
            yield quota_record(entity, key, quota)
    if image.next_producer_id != NO_PRODUCER_IDS:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    for id, acl in image.acls.items():
        yield acl.record(id)
    for (mechanism, user), credential in image.scram.items():
        yield credential.record(mechanism, user)
    for token_id, token in image.tokens.items():
        yield token.record(token_id)


def feature_records(levels: dict[str, int]) -> Iterator[FeatureLevelRecord]:
    """Records for finalized levels: metadata.version first, the others by name, levels of zero left out."""
    for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
        if levels[name] > 0:
            yield FeatureLevelRecord(name=name, feature_level=levels[name])
