"""ShareGroupDescribe and DescribeShareGroupOffsets: what there is to know of a share group."""

from collections.abc import Iterable, Mapping

from ottla.groups.description import ALL, some
from ottla.groups.share.desk import Desk
from ottla.groups.share.member import Member
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from ottla.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeResponse

ASSIGNOR = "simple"
UNKNOWN = -1
_INT64_MAX = (1 << 63) - 1

Described = ShareGroupDescribeResponse.DescribedGroup
AskedOffsets = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
GroupOffsets = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_TopicOffsets = GroupOffsets.DescribeShareGroupOffsetsResponseTopic
_Offset = _TopicOffsets.DescribeShareGroupOffsetsResponsePartition
_Summary = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
_Found = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult

# What a partition's end offset is, or why nobody knows it.
EndOffset = int | BrokerError


def describe(desk: Desk, group_id: str, members: slice = ALL) -> Described:
    """Return a group with some of its members; one that is not there with an error."""
    if not group_id.strip():
        return Described(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group = desk.find(group_id)
    except BrokerError as error:
        return Described(group_id=group_id, error_code=error.code, error_message=error.message)
    return Described(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(desk, member) for member in some(group, members)],
    )


def _member(desk: Desk, member: Member) -> Described.Member:
    part = ShareGroupDescribeResponse.TopicPartitions
    topics = [
        part(topic_id=topic_id, topic_name=facts.name, partitions=sorted(member.assigned[topic_id]))
        for topic_id in sorted(member.assigned)
        if (facts := desk.shelf.topics.by_id(topic_id)) is not None
    ]
    return Described.Member(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=ShareGroupDescribeResponse.Assignment(topic_partitions=topics),
    )


def summary_request(desk: Desk, asked: AskedOffsets) -> ReadShareGroupStateSummaryRequest:
    """Return what to ask the share coordinators: of the topics that were named, or of all that have state."""
    wanted: dict[bytes, Iterable[int]] = {}
    if asked.topics is None:
        group = desk.find(asked.group_id) if asked.group_id in desk.shelf.groups else None
        if group is not None and group.progress is not None:
            known = desk.shelf.topics.by_id
            wanted = {
                key: topic.partitions for key, topic in group.progress.initialized.items() if known(key)
            }
    else:
        for topic in asked.topics:
            facts = desk.shelf.topics.find(topic.topic_name)
            if facts is not None:
                wanted[facts.id] = topic.partitions
    part = _Summary.PartitionData
    topics = [
        _Summary(topic_id=key, partitions=[part(partition=each) for each in sorted(wanted[key])])
        for key in sorted(wanted)
    ]
    return ReadShareGroupStateSummaryRequest(group_id=asked.group_id, topics=topics)


def offsets_described(
    desk: Desk,
    asked: AskedOffsets,
    response: ReadShareGroupStateSummaryResponse,
    end_offsets: Mapping[tuple[bytes, int], EndOffset],
) -> GroupOffsets:
    """Return start offsets and lags, from what the share coordinators said and where the partitions end.

    Topics that do not exist, and partitions whose state cannot be read, have no offset rather than an error.
    """
    topics = [
        _TopicOffsets(
            topic_id=result.topic_id,
            topic_name=desk.name(result.topic_id),
            partitions=[
                _offset(part, end_offsets.get((result.topic_id, part.partition)))
                for part in result.partitions
            ],
        )
        for result in response.results
    ]
    for topic in asked.topics or ():
        if desk.shelf.topics.find(topic.topic_name) is None:
            partitions = [_Offset(partition_index=each, start_offset=UNKNOWN) for each in topic.partitions]
            topics.append(_TopicOffsets(topic_name=topic.topic_name, partitions=partitions))
    return GroupOffsets(group_id=asked.group_id, topics=topics)


def has_lag(found: _Found) -> bool:
    """Whether a partition's end offset is needed, for a lag to be told."""
    return not found.error_code and UNKNOWN not in {found.start_offset, found.delivery_complete_count}


def _offset(found: _Found, end_offset: EndOffset | None) -> _Offset:
    if found.error_code:
        return _Offset(partition_index=found.partition, start_offset=UNKNOWN)
    if has_lag(found) and isinstance(end_offset, BrokerError):
        return _Offset(
            partition_index=found.partition, error_code=end_offset.code, error_message=end_offset.message
        )
    lag = UNKNOWN
    if has_lag(found) and isinstance(end_offset, int):
        # Whoever may write states may write any numbers, and the answer has room for 64 bits.
        lag = end_offset - found.start_offset - found.delivery_complete_count
        lag = max(min(lag, _INT64_MAX), ~_INT64_MAX)
    return _Offset(
        partition_index=found.partition,
        start_offset=found.start_offset,
        leader_epoch=found.leader_epoch,
        lag=lag,
    )
