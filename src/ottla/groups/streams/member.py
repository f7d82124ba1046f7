"""A member of a streams group: a thread of a process, what it runs, and how far it has come.

    STABLE --must give up tasks--> UNREVOKED --gave them up--> STABLE, or
    STABLE --waits for others--> UNRELEASED --they gave them up--> STABLE

Members are values: a change makes a new one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from ottla.groups.classic.member import text_bytes
from ottla.groups.member_limits import names_bytes
from ottla.groups.streams.tasks import Dated, Holding, table
from ottla.wire.records.streams_group import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)

_TaskIds = StreamsGroupCurrentMemberAssignmentValue.TaskIds

# The epoch by which a member says that it goes, and the one by which static members would.
LEAVES = -1
LEAVES_FOR_NOW = -2


class MemberState(IntEnum):
    """How a member stands to its assignment; the number is the one kept in records, unlike that of a consumer."""

    STABLE = 1
    UNREVOKED = 2
    UNRELEASED = 3
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> "MemberState":
        """Return the state a record names, which may be one of a newer release."""
        return cls(value) if value in (1, 2, 3) else cls.UNKNOWN


class Endpoint(NamedTuple):
    """Where a process answers queries about its state."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Member:
    """One member; `assigned` is what it may run, `revoking` what it has been told to give up."""

    id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    assigned: Holding = field(default_factory=Holding)
    revoking: Holding = field(default_factory=Holding)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all of the target assignment of an epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def epoch_of(self, subtopology: str, partition: int) -> int | None:
        """Return the epoch in which the member got an active task it has or gives up; None for neither."""
        found = self.assigned.active.get(subtopology, {}).get(partition)
        return found if found is not None else self.revoking.active.get(subtopology, {}).get(partition)

    @property
    def size_bytes(self) -> int:
        """How many bytes its tags hold."""
        return names_bytes(self.tags) + sum([text_bytes(value) for value in self.tags.values()])

    @property
    def description_cost(self) -> int:
        """How much there is to say of it, in members of which there is little."""
        tasks = (self.assigned.active, self.assigned.standby, self.assigned.warmup)
        held = sum(sum(map(len, each.values())) for each in tasks)
        return 1 + (len(self.tags) + 2 * held) // 20

    def with_description(self, value: StreamsGroupMemberMetadataValue) -> "Member":
        """Return the member as a record describes it."""
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            tags={tag.key: tag.value for tag in value.client_tags},
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> "Member":
        """Return the member with what a record says that it runs."""
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=Holding(
                _dated(value.active_tasks, value.member_epoch),
                table(value.standby_tasks),
                table(value.warmup_tasks),
            ),
            revoking=Holding(
                _dated(value.active_tasks_pending_revocation, value.member_epoch),
                table(value.standby_tasks_pending_revocation),
                table(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_tasks(self) -> "Member":
        """Return the member as it is when its assignment has gone, but it is still in the group's list."""
        return replace(self, epoch=LEAVES, previous_epoch=LEAVES, assigned=Holding(), revoking=Holding())


def _dated(tasks: Iterable[_TaskIds], member_epoch: int) -> Dated:
    found: dict[str, Mapping[int, int]] = {}
    for each in tasks:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            # Releases before 4.3 kept no epochs with the tasks.
            epochs = [member_epoch] * len(each.partitions)
        if each.partitions:
            found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
