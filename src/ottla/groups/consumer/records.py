"""The records of consumer groups, as Kafka writes them.

Topics come in the order of their ids and partitions in theirs, which Kafka leaves to chance.
"""

from collections.abc import Iterable

from ottla.groups.assignors.spec import Assignment
from ottla.groups.consumer.member import Holding, Member
from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.wire.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

KINDS: Kinds = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}


def subscription(group_id: str, member: Member) -> KeyedRecord:
    """Say who a member is and what it wants."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )
    return KeyedRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value)


def epoch(group_id: str, number: int, metadata_hash: int) -> KeyedRecord:
    """Say that the group is in an epoch, which it entered with topics of this hash."""
    value = ConsumerGroupMetadataValue(epoch=number, metadata_hash=metadata_hash)
    return KeyedRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def target(group_id: str, member_id: str, assignment: Assignment) -> KeyedRecord:
    """Say what a member shall hold."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(
                topic_id=topic_id, partitions=sorted(assignment[topic_id])
            )
            for topic_id in sorted(assignment)
        ]
    )
    return KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch(group_id: str, number: int, timestamp: int) -> KeyedRecord:
    """Say for which epoch of the group the target assignment was computed, and when."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=number, assignment_timestamp=timestamp
    )
    return KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current(group_id: str, member: Member) -> KeyedRecord:
    """Say what a member holds, and what it gives up."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.revoking),
    )
    return KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id), value)


def regex(group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp: int) -> KeyedRecord:
    """Say which topics a regular expression stands for."""
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp)
    return KeyedRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value
    )


def regex_gone(group_id: str, pattern: str) -> KeyedRecord:
    """Say that nobody wants a regular expression any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return KeyedRecord(key, None)


def topics_gone(group_id: str) -> KeyedRecord:
    """Remove what releases before 4.1 kept of a group's topics."""
    return KeyedRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_gone(group_id: str, member_id: str) -> list[KeyedRecord]:
    """Say that a member has gone: first what it holds, then what it should, then itself."""
    return [
        KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        KeyedRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_gone(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[KeyedRecord]:
    """Say that a group has gone with all that belongs to it, in an order in which it can be taken apart."""
    ids = list(member_ids)
    currents, targets, members = (
        [record for each in ids for record in member_gone(group_id, each)[place : place + 1]]
        for place in range(3)
    )
    return [
        *currents,
        *targets,
        KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *members,
        *(regex_gone(group_id, each) for each in patterns),
        topics_gone(group_id),
        KeyedRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _partitions(holding: Holding) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    found = []
    for topic_id in sorted(holding):
        partitions = sorted(holding[topic_id])
        found.append(
            ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[holding[topic_id][each] for each in partitions],
            )
        )
    return found
