"""Records into groups: the only place where the durable state of consumer groups changes.

F1  A record of a group that is not there makes it; a tombstone of one is nothing.
F2  A tombstone takes along whatever depends on what has gone. Groups are taken apart in order, each part by its own
    tombstone; but compaction may have removed the earlier of them, and a log must load all the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.groups.consumer.group import ConsumerGroup, gone
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.subscription import Resolved
from ottla.groups.epochs import group_of
from ottla.groups.group import Group
from ottla.replicated.keyed import KeyedRecord

Groups = dict[str, Group]


def fold(groups: Groups, record: KeyedRecord) -> None:
    """Take one record in."""
    group = group_of(groups, record, ConsumerGroup)
    if group is not None:
        kind = record.key.api_key
        assert kind is not None, "keys of records have a type"
        _FOLDS[kind](groups, group, record.key, record.value)


def _group(groups: Groups, group: ConsumerGroup, _: Any, value: Any) -> None:
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        return
    del groups[group.id]


def _topics(_: Groups, group: ConsumerGroup, __: Any, value: Any) -> None:
    group.has_topics_record = value is not None


def _member(_: Groups, group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put((member or Member(key.member_id)).with_subscription(value))
    elif member is not None:
        group.targets.pop(member.id, None)
        group.remove(member.id)


def _target_epoch(_: Groups, group: ConsumerGroup, __: Any, value: Any) -> None:
    if not group.take_target_epoch(value):
        group.targets.clear()


def _target(_: Groups, group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        return
    group.targets[key.member_id] = {
        topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
    }


def _current(_: Groups, group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put((member or Member(key.member_id)).with_assignment(value))
    elif member is not None:
        group.put(gone(member))


def _regex(_: Groups, group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None
    if value is not None:
        resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.resolve(key.regular_expression, resolved)


_FOLDS: Mapping[int, Callable[[Groups, ConsumerGroup, Any, Any], None]] = {
    3: _group,
    4: _topics,
    5: _member,
    6: _target_epoch,
    7: _target,
    8: _current,
    16: _regex,
}
