"""Records into groups: the only place where the durable state of streams groups changes.

F1  A record of a group that is not there makes it; a tombstone of one is nothing.
F2  A tombstone takes along whatever depends on what has gone, for compaction may have removed the tombstones that went
    before it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.groups.epochs import group_of
from ottla.groups.group import Group
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Tasks, table
from ottla.groups.streams.topology import Topology
from ottla.replicated.keyed import KeyedRecord

Groups = dict[str, Group]


def fold(groups: Groups, record: KeyedRecord) -> None:
    """Take one record in."""
    group = group_of(groups, record, StreamsGroup)
    if group is not None:
        kind = record.key.api_key
        assert kind is not None, "keys of records have a type"
        _FOLDS[kind](groups, group, record.key, record.value)


def _group(groups: Groups, group: StreamsGroup, _: Any, value: Any) -> None:
    if value is None:
        del groups[group.id]
        return
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_epoch = value.validated_topology_epoch
    group.configs = {each.key: each.value for each in value.last_assignment_configs or ()}


def _topology(_: Groups, group: StreamsGroup, __: Any, value: Any) -> None:
    group.put_topology(None if value is None else Topology(value))


def _member(_: Groups, group: StreamsGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put((member or Member(key.member_id)).with_description(value))
    elif member is not None:
        group.targets.pop(member.id, None)
        group.remove(member.id)


def _target_epoch(_: Groups, group: StreamsGroup, __: Any, value: Any) -> None:
    if not group.take_target_epoch(value):
        group.targets.clear()


def _target(_: Groups, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        return
    group.targets[key.member_id] = Tasks(
        table(value.active_tasks), table(value.standby_tasks), table(value.warmup_tasks)
    )


def _current(_: Groups, group: StreamsGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put((member or Member(key.member_id)).with_assignment(value))
    elif member is not None:
        group.put(member.without_tasks())


_FOLDS: Mapping[int, Callable[[Groups, StreamsGroup, Any, Any], None]] = {
    17: _group,
    19: _member,
    20: _target_epoch,
    21: _target,
    22: _current,
    23: _topology,
}
