"""The records of share groups, as Kafka writes them.

Topics come in the order of their ids and partitions in theirs, which Kafka leaves to chance.
"""

from collections.abc import Iterable

from ottla.groups.assignors.spec import Assignment
from ottla.groups.share.member import STABLE, Member
from ottla.groups.share.progress import Progress, Topic
from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.wire.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

KINDS: Kinds = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}

_Known = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo
_Deleting = ShareGroupStatePartitionMetadataValue.TopicInfo


def subscription(group_id: str, member: Member) -> KeyedRecord:
    """Say who a member is and what it wants."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )
    return KeyedRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value)


def epoch(group_id: str, number: int, metadata_hash: int) -> KeyedRecord:
    """Say that the group is in an epoch, which it entered with topics of this hash."""
    value = ShareGroupMetadataValue(epoch=number, metadata_hash=metadata_hash)
    return KeyedRecord(ShareGroupMetadataKey(group_id=group_id), value)


def target(group_id: str, member_id: str, assignment: Assignment) -> KeyedRecord:
    """Say what a member shall read."""
    part = ShareGroupTargetAssignmentMemberValue.TopicPartition
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            part(topic_id=each, partitions=sorted(assignment[each])) for each in sorted(assignment)
        ]
    )
    return KeyedRecord(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch(group_id: str, number: int, timestamp: int) -> KeyedRecord:
    """Say for which epoch of the group the target assignment was computed, and when."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=number, assignment_timestamp=timestamp)
    return KeyedRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current(group_id: str, member: Member) -> KeyedRecord:
    """Say what a member reads."""
    part = ShareGroupCurrentMemberAssignmentValue.TopicPartitions
    assigned = member.assigned
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STABLE,
        assigned_partitions=[
            part(topic_id=each, partitions=sorted(assigned[each])) for each in sorted(assigned)
        ],
    )
    return KeyedRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id), value)


def progress(group_id: str, made: Progress) -> KeyedRecord:
    """Say which share partitions have durable state, get it, or lose it."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_known(made.initializing),
        initialized_topics=_known(made.initialized),
        deleting_topics=[
            _Deleting(topic_id=topic_id, topic_name=made.deleting[topic_id])
            for topic_id in sorted(made.deleting)
        ],
    )
    return KeyedRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_gone(group_id: str, member_id: str) -> list[KeyedRecord]:
    """Say that a member has gone: first what it reads, then what it should, then itself."""
    names = {"group_id": group_id, "member_id": member_id}
    return [
        KeyedRecord(ShareGroupCurrentMemberAssignmentKey(**names), None),
        KeyedRecord(ShareGroupTargetAssignmentMemberKey(**names), None),
        KeyedRecord(ShareGroupMemberMetadataKey(**names), None),
    ]


def group_gone(group_id: str, member_ids: Iterable[str]) -> list[KeyedRecord]:
    """Say that a group has gone with all that belongs to it, in an order in which it can be taken apart."""
    gone = [member_gone(group_id, each) for each in member_ids]
    return [
        *(records[0] for records in gone),
        *(records[1] for records in gone),
        KeyedRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(records[2] for records in gone),
        KeyedRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        KeyedRecord(ShareGroupMetadataKey(group_id=group_id), None),
    ]


def _known(topics: dict[bytes, Topic]) -> list[_Known]:
    return [
        _Known(
            topic_id=topic_id,
            topic_name=topics[topic_id].name,
            partitions=sorted(topics[topic_id].partitions),
        )
        for topic_id in sorted(topics)
    ]
