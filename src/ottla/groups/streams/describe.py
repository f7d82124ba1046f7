"""StreamsGroupDescribe: a group's epochs, its topology, its members, what they run and what they shall run."""

from collections.abc import Mapping

from ottla.groups.description import ALL, some
from ottla.groups.streams.assignor import NAME as ASSIGNOR
from ottla.groups.streams.desk import Desk
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Partitions, Tasks
from ottla.groups.streams.topology import Subtopology, TopicInfo, Topology
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeResponse

DescribedGroup = StreamsGroupDescribeResponse.DescribedGroup
_Response = StreamsGroupDescribeResponse
# What became of the wish for a topology's description (KIP-1331): there was none, or nothing is kept.
_NOT_REQUESTED, _NOT_STORED = 0, 1


def describe(desk: Desk, group_id: str, members: slice = ALL, *, described: bool = False) -> DescribedGroup:
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
        topology=None if group.topology is None or members.start else _topology(group, group.topology),
        members=[_member(group, member) for member in some(group, members)],
        topology_description_status=_NOT_STORED if described else _NOT_REQUESTED,
        assignor_name=ASSIGNOR,
    )


def _topology(group: StreamsGroup, topology: Topology) -> DescribedGroup.Topology:
    """Describe a topology: as its topics are, once they all are, and before that as it was brought."""
    configured = group.configured
    counts = configured.counts if configured is not None and configured.flaw is None else {}
    return DescribedGroup.Topology(
        epoch=topology.epoch,
        subtopologies=[
            _subtopology(topology.subtopologies[each], counts) for each in sorted(topology.subtopologies)
        ],
    )


def _subtopology(subtopology: Subtopology, counts: Mapping[str, int]) -> DescribedGroup.Topology.Subtopology:
    return DescribedGroup.Topology.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        repartition_source_topics=_topics(subtopology.repartition_source_topics, counts),
        state_changelog_topics=_topics(subtopology.state_changelog_topics, counts),
    )


def _topics(topics: list[TopicInfo], counts: Mapping[str, int]) -> list[_Response.TopicInfo]:
    return [
        _Response.TopicInfo(
            name=topic.name,
            partitions=counts.get(topic.name, topic.partitions),
            replication_factor=topic.replication_factor,
            topic_configs=[
                _Response.KeyValue(key=each.key, value=each.value) for each in topic.topic_configs
            ],
        )
        for topic in sorted(topics, key=lambda one: one.name)
    ]


def _member(group: StreamsGroup, member: Member) -> DescribedGroup.Member:
    endpoint = None
    if member.endpoint is not None:
        endpoint = _Response.Endpoint(host=member.endpoint.host, port=member.endpoint.port)
    return DescribedGroup.Member(
        member_id=member.id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[_Response.KeyValue(key=key, value=value) for key, value in member.tags.items()],
        assignment=_assignment(member.assigned.plain),
        target_assignment=_assignment(group.target(member.id)),
    )


def _assignment(tasks: Tasks) -> _Response.Assignment:
    return _Response.Assignment(
        active_tasks=_ids(tasks.active), standby_tasks=_ids(tasks.standby), warmup_tasks=_ids(tasks.warmup)
    )


def _ids(tasks: Partitions) -> list[_Response.TaskIds]:
    return [_Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]
