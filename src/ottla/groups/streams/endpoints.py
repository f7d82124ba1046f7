"""Where to ask about the state of a partition: each member's endpoint, with the partitions behind its tasks.

A partition is listed with a task of its number if its topic has it; topics that have gone, and tasks of subtopologies
that are not configured, have none.
"""

from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Partitions
from ottla.groups.streams.topology import Topology, source_names
from ottla.groups.topics import TopicsView
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

EndpointToPartitions = StreamsGroupHeartbeatResponse.EndpointToPartitions
_Endpoint = StreamsGroupHeartbeatResponse.Endpoint
_TopicPartition = StreamsGroupHeartbeatResponse.TopicPartition


def endpoints(
    group: StreamsGroup, topology: Topology, after: Member, topics: TopicsView
) -> list[EndpointToPartitions]:
    """Return the endpoints of all members, one of which is as it will be."""
    others = [member for member in group.members.values() if member.id != after.id]
    found = []
    for member in (*others, after):
        if member.endpoint is None:
            continue
        tasks = member.assigned.plain
        found.append(
            EndpointToPartitions(
                user_endpoint=_Endpoint(host=member.endpoint.host, port=member.endpoint.port),
                active_partitions=_partitions(tasks.active, topology, topics),
                standby_partitions=_partitions(tasks.standby, topology, topics),
            )
        )
    return found


def _partitions(tasks: Partitions, topology: Topology, topics: TopicsView) -> list[_TopicPartition]:
    found = []
    for each in sorted(tasks):
        subtopology = topology.subtopologies.get(each)
        for name in sorted(set(source_names(subtopology))) if subtopology is not None else ():
            facts = topics.find(name)
            if facts is not None:
                partitions = [number for number in sorted(tasks[each]) if number < facts.partitions]
                found.append(_TopicPartition(topic=name, partitions=partitions))
    return found
