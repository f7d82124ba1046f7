"""The record of a classic group, written as Kafka writes it."""

from collections.abc import Mapping

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.replicated.keyed import Client, KeyedRecord, Kinds
from ottla.wire.records.classic_group import GroupMetadataKey, GroupMetadataValue

KINDS: Kinds = {2: (GroupMetadataKey, GroupMetadataValue)}

# Kafka stays below the newest version so that releases before tagged fields can still read the log.
VALUE_VERSION = 3


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> KeyedRecord:
    """Return the record of a generation, with what each member was assigned."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=-1 if group.since_ms is None else group.since_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.client_id,
                client_host=member.client.host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.id, b""),
            )
            for member in group.members.values()
        ],
    )
    return KeyedRecord(GroupMetadataKey(group=group.id), value, VALUE_VERSION)


def first_record(group: ClassicGroup) -> KeyedRecord:
    """Return the record that a new group exists; nobody is in it as far as the log knows."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=-1 if group.since_ms is None else group.since_ms,
        members=[],
    )
    return KeyedRecord(GroupMetadataKey(group=group.id), value, VALUE_VERSION)


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that a record describes: stable if it has members, else empty."""
    since_ms = value.current_state_timestamp
    group = ClassicGroup(
        group_id,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        generation=value.generation,
        leader=value.leader,
        since_ms=None if since_ms == -1 else since_ms,
    )
    for each in value.members:
        rebalance_ms = each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout
        group.put(
            Member(
                each.member_id,
                each.group_instance_id,
                Client(each.client_id, each.client_host),
                rebalance_ms,
                each.session_timeout,
                ((value.protocol or "", each.subscription),),
                each.assignment,
            )
        )
    group.load()
    return group
