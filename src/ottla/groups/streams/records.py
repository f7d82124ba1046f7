"""The records of streams groups, as Kafka writes them.

Subtopologies come in the order of their ids, and partitions in theirs.
"""

from collections.abc import Iterable, Mapping

from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Dated, Partitions, Tasks
from ottla.groups.streams.topology import Topology
from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.wire.records.streams_group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

KINDS: Kinds = {
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}

_Current = StreamsGroupCurrentMemberAssignmentValue
_Target = StreamsGroupTargetAssignmentMemberValue


def description(group_id: str, member: Member) -> KeyedRecord:
    """Say who a member is."""
    endpoint = None
    if member.endpoint is not None:
        endpoint = StreamsGroupMemberMetadataValue.Endpoint(
            host=member.endpoint.host, port=member.endpoint.port
        )
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[
            StreamsGroupMemberMetadataValue.KeyValue(key=key, value=member.tags[key])
            for key in sorted(member.tags)
        ],
    )
    return KeyedRecord(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value)


def topology(group_id: str, said: Topology) -> KeyedRecord:
    """Say what the group runs."""
    return KeyedRecord(StreamsGroupTopologyKey(group_id=group_id), said.value)


def epoch(
    group_id: str, number: int, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]
) -> KeyedRecord:
    """Say that the group is in an epoch, and with what it entered it; a topology that is not ready is epoch -1."""
    value = StreamsGroupMetadataValue(
        epoch=number,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=configs[key])
            for key in sorted(configs)
        ],
    )
    return KeyedRecord(StreamsGroupMetadataKey(group_id=group_id), value)


def target(group_id: str, member_id: str, tasks: Tasks) -> KeyedRecord:
    """Say what a member shall run."""
    value = _Target(
        active_tasks=_target(tasks.active),
        standby_tasks=_target(tasks.standby),
        warmup_tasks=_target(tasks.warmup),
    )
    return KeyedRecord(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch(group_id: str, number: int, timestamp: int) -> KeyedRecord:
    """Say for which epoch of the group the target assignment was computed, and when."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=number, assignment_timestamp=timestamp)
    return KeyedRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current(group_id: str, member: Member) -> KeyedRecord:
    """Say what a member runs, and what it gives up."""
    value = _Current(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_dated(member.assigned.active),
        standby_tasks=_plain(member.assigned.standby),
        warmup_tasks=_plain(member.assigned.warmup),
        active_tasks_pending_revocation=_dated(member.revoking.active),
        standby_tasks_pending_revocation=_plain(member.revoking.standby),
        warmup_tasks_pending_revocation=_plain(member.revoking.warmup),
    )
    return KeyedRecord(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id), value)


def member_gone(group_id: str, member_id: str) -> list[KeyedRecord]:
    """Say that a member has gone: first what it runs, then what it should, then itself."""
    return [
        KeyedRecord(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        KeyedRecord(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        KeyedRecord(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_gone(group_id: str, member_ids: Iterable[str]) -> list[KeyedRecord]:
    """Say that a group has gone with all that belongs to it, in an order in which it can be taken apart."""
    ids = list(member_ids)
    currents, targets, members = ([member_gone(group_id, each)[place] for each in ids] for place in range(3))
    return [
        *currents,
        *targets,
        KeyedRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *members,
        KeyedRecord(StreamsGroupMetadataKey(group_id=group_id), None),
        KeyedRecord(StreamsGroupTopologyKey(group_id=group_id), None),
    ]


def _target(tasks: Partitions) -> list[_Target.TaskIds]:
    return [_Target.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]


def _plain(tasks: Partitions) -> list[_Current.TaskIds]:
    return [_Current.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]


def _dated(tasks: Dated) -> list[_Current.TaskIds]:
    found = []
    for each in sorted(tasks):
        partitions = sorted(tasks[each])
        epochs = [tasks[each][partition] for partition in partitions]
        found.append(_Current.TaskIds(subtopology_id=each, partitions=partitions, assignment_epochs=epochs))
    return found
