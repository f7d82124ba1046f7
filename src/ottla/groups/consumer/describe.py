"""ConsumerGroupDescribe: a group's epochs, its members, what they have and what they shall have."""

from collections.abc import Collection, Mapping

from ottla.groups.consumer.desk import Desk
from ottla.groups.consumer.group import ConsumerGroup, preferred
from ottla.groups.consumer.member import Member
from ottla.groups.description import ALL, some
from ottla.groups.topics import TopicsView
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse

DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
Assignment = ConsumerGroupDescribeResponse.Assignment
TopicPartitions = ConsumerGroupDescribeResponse.TopicPartitions


def describe(desk: Desk, group_id: str, members: slice = ALL) -> DescribedGroup:
    """Describe one group, with some of its members; why it can not be is said in its place."""
    if not group_id:
        return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group = desk.find(group_id)
    except BrokerError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred(group.assignors, desk.assignors[0]),
        members=[_member(desk, group, member) for member in some(group, members)],
    )


def _member(desk: Desk, group: ConsumerGroup, member: Member) -> DescribedGroup.Member:
    # What a member has yet to give up, it still answers for.
    holds = {topic: set(partitions) for topic, partitions in member.assigned.items()}
    for topic, partitions in member.revoking.items():
        holds.setdefault(topic, set()).update(partitions)
    return DescribedGroup.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(holds, desk.shelf.topics),
        target_assignment=_assignment(group.targets.get(member.id, {}), desk.shelf.topics),
        member_type=1 if member.classic is None else 0,
    )


def _assignment(partitions: Mapping[bytes, Collection[int]], topics: TopicsView) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic, topic_name=facts.name, partitions=sorted(partitions[topic]))
            for topic in sorted(partitions)
            if (facts := topics.by_id(topic)) is not None
        ]
    )
