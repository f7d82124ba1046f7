"""The target assignment of a group, for an epoch that has none yet."""

from collections.abc import Mapping

from ottla.groups.streams import records
from ottla.groups.streams.assignor import Runner, Work, assign
from ottla.groups.streams.configuration import Configured
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Tasks
from ottla.groups.streams.topology import Topology
from ottla.replicated.keyed import KeyedRecord

_STANDBYS = "num.standby.replicas"


def targets(
    group: StreamsGroup,
    members: Mapping[str, Member],
    topology: Topology,
    configured: Configured,
    configs: Mapping[str, str],
) -> dict[str, Tasks]:
    """Return what each member shall run: nothing, unless the topology is ready."""
    if configured.flaw is not None or configured.tasks is None:
        return dict.fromkeys(members, Tasks())
    stateful = frozenset(
        each for each, subtopology in topology.subtopologies.items() if subtopology.state_changelog_topics
    )
    runners = {member.id: Runner(member.process_id, group.target(member.id)) for member in members.values()}
    return assign(runners, Work(configured.tasks, stateful, int(configs.get(_STANDBYS, "0"))))


def target_records(
    group: StreamsGroup, epoch: int, wanted: Mapping[str, Tasks], now: int
) -> list[KeyedRecord]:
    """Return the records of what is other than before, and of the epoch."""
    changed = [
        records.target(group.id, member_id, tasks)
        for member_id, tasks in wanted.items()
        if tasks != group.targets.get(member_id)
    ]
    return [*changed, records.target_epoch(group.id, epoch, now)]
