"""The delta between two images that no records connect, as when a snapshot overtakes the log.

D4  Applied to `before` it gives an image equal to `after`: nothing that changed is left out, nothing else is in it.
"""

from collections.abc import Mapping
from typing import TypeVar

from ottla.metadata.config import Configs, Resource
from ottla.metadata.delta import Delta, TopicChange
from ottla.metadata.image import Image

K = TypeVar("K")
V = TypeVar("V")


def difference(before: Image, after: Image) -> Delta:
    """What makes `after` of `before`."""
    delta = Delta(before)
    levels, now = before.features.all(), after.features.all()
    delta.features = {name: now.get(name, 0) for name in {*levels, *now} if levels.get(name) != now.get(name)}
    delta.brokers = _changed(before.brokers, after.brokers)
    delta.controllers = _changed(before.controllers, after.controllers)
    _topics(delta, before, after)
    delta.configs = _changed_configs(before.configs, after.configs)
    delta.quotas = _changed_maps(before.quotas, after.quotas)
    if after.next_producer_id != before.next_producer_id:
        delta.next_producer_id = after.next_producer_id
    delta.acls = _changed(before.acls, after.acls)
    delta.scram = _changed(before.scram, after.scram)
    delta.tokens = _changed(before.tokens, after.tokens)
    return delta


def _topics(delta: Delta, before: Image, after: Image) -> None:
    for topic_id, topic in before.topics.by_id.items():
        if topic_id not in after.topics.by_id:
            delta.removed_topics[topic_id] = topic
    for topic_id, topic in after.topics.by_id.items():
        known = before.topics.by_id.get(topic_id)
        if known is topic:
            continue
        change = TopicChange(topic.name, topic_id, known)
        old = {} if known is None else known.partitions
        change.partitions = {
            index: state for index, state in topic.partitions.items() if old.get(index) != state
        }
        if change.partitions or known is None:
            delta.topics[topic_id] = change


def _changed(before: Mapping[K, V], after: Mapping[K, V]) -> dict[K, V | None]:
    found: dict[K, V | None] = {key: None for key in before if key not in after}
    found.update({key: value for key, value in after.items() if before.get(key) != value})
    return found


def _changed_configs(before: Configs, after: Configs) -> dict[Resource, dict[str, str | None]]:
    found: dict[Resource, dict[str, str | None]] = {}
    for kind in {**before.by_kind, **after.by_kind}:
        changes = _changed_maps(before.of_kind(kind), after.of_kind(kind))
        found.update({(kind, name): values for name, values in changes.items()})
    return found


def _changed_maps(
    before: Mapping[K, Mapping[str, V]], after: Mapping[K, Mapping[str, V]]
) -> dict[K, dict[str, V | None]]:
    nothing: Mapping[str, V] = {}
    found = {key: _changed(before.get(key, nothing), after.get(key, nothing)) for key in {**before, **after}}
    return {key: values for key, values in found.items() if values}
