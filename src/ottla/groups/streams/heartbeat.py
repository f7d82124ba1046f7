"""StreamsGroupHeartbeat: the one request by which a member joins, reports, stays and leaves.

B1  A heartbeat takes four steps: who the member is, what the topology needs, what the member shall run, what it runs.
    One that changes nothing writes nothing.
B2  The answer holds the member's tasks when it joins and when they have changed; and who can be asked about state,
    when that has changed since the member was last told.
B3  Topics that are missing are named with every answer, until they are there: to have them made is the broker's work.
"""

from dataclasses import replace
from typing import NamedTuple

from ottla.groups.member_limits import admit
from ottla.groups.streams import records
from ottla.groups.streams.configuration import Configured, CreatableTopic
from ottla.groups.streams.departure import fence
from ottla.groups.streams.desk import Desk
from ottla.groups.streams.endpoints import endpoints
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Endpoint, Member, MemberState
from ottla.groups.streams.reconciliation import Goal, reconcile
from ottla.groups.streams.request import owned
from ottla.groups.streams.statuses import Status, StatusCode, status
from ottla.groups.streams.target import target_records, targets
from ottla.groups.streams.tasks import Partitions, Tasks, contains
from ottla.groups.streams.topology import Topology, said
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

Response = StreamsGroupHeartbeatResponse
_NOT_READY = -1


class Heard(NamedTuple):
    """What a member is answered, and the topics that its group needs for itself and does not have."""

    response: Response
    missing: tuple[CreatableTopic, ...] = ()


def heartbeat(desk: Desk, request: StreamsGroupHeartbeatRequest, client: Client, now: int) -> Decision[Heard]:
    """Let a member in, or hear from it; BrokerError says why not."""
    joins = request.member_epoch == 0
    out: list[KeyedRecord] = []
    if joins:
        group = desk.find_or_new(request.group_id, out)
        desk.check_room(group)
        before = group.members.get(request.member_id) or Member(request.member_id)
    else:
        group = desk.find(request.group_id)
        before = group.member(request.member_id)
    owns = owned(request)
    _check_epoch(before, request.member_epoch, owns)
    beat = _Beat(desk, group, now, out)
    after = _updated(before, request, client)
    topology = beat.describe(before, after, request)
    configured = group.configure(topology, desk.shelf.topics)
    epoch, configs = beat.enter_epoch(topology, configured, owns, news=after != before)
    target_epoch, target = beat.assign(after, topology, configured, epoch, configs)
    after = beat.reconcile(after, Goal(target_epoch, target, group.owners), owns)
    desk.await_heartbeat(group.id, after.id, now)
    if request.shutdown_application:
        group.shutdown_by = group.shutdown_by or after.id
    response = Response(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=desk.heartbeat_interval_ms(group.id),
    )
    if joins or after.assigned != before.assigned:
        tasks = after.assigned.plain
        response.active_tasks = _ids(tasks.active)
        response.standby_tasks = _ids(tasks.standby)
        response.warmup_tasks = _ids(tasks.warmup)
        group.endpoint_epoch += after.endpoint is not None
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = endpoints(group, topology, after, desk.shelf.topics)
    if group.id in desk.shelf.groups:
        # A group that is only now being made counts from 0 again.
        response.endpoint_information_epoch = group.endpoint_epoch
    response.status = [*beat.statuses, *_hindrances(group, configured)]
    return Decision(Heard(response, configured.missing), tuple(out), any_length=True)


def leave(desk: Desk, request: StreamsGroupHeartbeatRequest) -> Decision[Heard]:
    """Let a member go, which may ask that all the others go too."""
    group = desk.find(request.group_id)
    if request.shutdown_application:
        group.shutdown_by = group.shutdown_by or request.member_id
    member = group.member(request.member_id)
    reply = Response(member_id=member.id, member_epoch=request.member_epoch, status=[])
    return Decision(Heard(reply), tuple(fence(group, member)), any_length=True)


class _Beat:
    """The steps of one heartbeat; the group itself changes by the records they leave."""

    __slots__ = ("_desk", "_group", "_now", "_out", "statuses")

    def __init__(self, desk: Desk, group: StreamsGroup, now: int, out: list[KeyedRecord]) -> None:
        self._desk = desk
        self._group = group
        self._now = now
        self._out = out
        self.statuses: list[Status] = []

    def describe(self, before: Member, after: Member, request: StreamsGroupHeartbeatRequest) -> Topology:
        """Note who the member is, and the topology if it brings the first; return the one that holds."""
        group = self._group
        if after != before:
            self._out.append(records.description(group.id, after))
        brought = None if request.topology is None else said(request.topology)
        holds = group.topology
        brings_bytes = after.size_bytes - before.size_bytes
        if holds is None and brought is not None:
            brings_bytes += brought.size_bytes
        admit(self._desk.shelf, brings_bytes, self._now)
        if holds is None:
            if brought is None:
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._out.append(records.topology(group.id, brought))
            return brought
        if brought is not None and brought.epoch >= holds.epoch and brought != holds:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        if after.topology_epoch < holds.epoch:
            message = (
                f"The member's topology epoch {after.topology_epoch} is behind the group's topology epoch "
                f"{holds.epoch}."
            )
            self.statuses.append(status(StatusCode.STALE_TOPOLOGY, message))
        return holds

    def enter_epoch(
        self, topology: Topology, configured: Configured, owns: Tasks | None, *, news: bool
    ) -> tuple[int, dict[str, str]]:
        """Let the group's epoch rise when there is news; return it, and the settings of the assignor."""
        desk, group = self._desk, self._group
        version = desk.shelf.topics.version
        metadata_hash = group.metadata_hash
        if group.topology is None or not group.is_fresh(version):
            metadata_hash = desk.digests.of(topology.topics)
        validated = _NOT_READY
        if configured.flaw is None:
            validated = topology.epoch
            _check_tasks(configured, owns)
        configs = desk.assignment_configs(group.id)
        epoch = group.epoch
        if (
            news
            or metadata_hash != group.metadata_hash
            or validated != group.validated_epoch
            or configs != group.configs
        ):
            epoch += 1
            self._out.append(records.epoch(group.id, epoch, metadata_hash, validated, configs))
        group.refreshed = version, epoch
        return epoch, configs

    def assign(
        self, after: Member, topology: Topology, configured: Configured, epoch: int, configs: dict[str, str]
    ) -> tuple[int, Tasks]:
        """Compute the target assignment if it is behind and may be; return its epoch, and the member's part of it."""
        desk, group = self._desk, self._group
        if not group.members:
            desk.await_members(group.id, self._now)
        if desk.awaits_members(group.id):
            self._delayed("initial rebalance delay")
            return group.assignment_epoch, Tasks()
        if group.assignment_epoch < epoch:
            if desk.may_assign(group, self._now):
                members = {**group.members, after.id: after}
                wanted = targets(group, members, topology, configured, configs)
                self._out += target_records(group, epoch, wanted, self._now)
                return epoch, wanted[after.id]
            self._delayed("assignment interval")
        return group.assignment_epoch, group.target(after.id)

    def reconcile(self, member: Member, goal: Goal, owns: Tasks | None) -> Member:
        """Take the member a step towards its target."""
        if member.is_reconciled_to(goal.epoch):
            return member
        after = reconcile(member, goal, owns)
        if after != member:
            self._out.append(records.current(self._group.id, after))
            # Else its timer goes off for nothing: cancelled here, it would be lost if the journal refuses the record.
            if after.state is MemberState.UNREVOKED:
                self._desk.await_revocation(self._group.id, after, self._now)
        return after

    def _delayed(self, why: str) -> None:
        detail = f"Assignment delayed due to the configured {why}."
        self.statuses.append(status(StatusCode.ASSIGNMENT_DELAYED, detail))


def _check_epoch(member: Member, epoch: int, owns: Tasks | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the member is where the coordinator takes it to be, or joins anew.

    One that is behind by one epoch is let in when all it runs is assigned to it: the answer that told it was lost.
    """
    if epoch in (0, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch:
        if owns is not None and contains(member.assigned.plain, owns):
            return
    word = "greater" if epoch > member.epoch else "smaller"
    message = (
        f"The streams group member has a {word} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _check_tasks(configured: Configured, owns: Tasks | None) -> None:
    """Raise INVALID_REQUEST when a member says that it runs what there is not."""
    tasks = configured.tasks or {}
    for table in () if owns is None else (owns.active, owns.standby, owns.warmup):
        for each, partitions in table.items():
            count = tasks.get(each)
            if count is None:
                message = f"Subtopology {each} does not exist in the topology."
                raise BrokerError(ErrorCode.INVALID_REQUEST, message)
            for partition in sorted(partitions):
                if not 0 <= partition < count:
                    message = (
                        f"Task {partition} for subtopology {each} is invalid. "
                        f"Number of tasks for this subtopology: {count}"
                    )
                    raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def _updated(member: Member, request: StreamsGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with what the request says anew; itself when that is nothing."""
    topology, endpoint, tags = request.topology, request.user_endpoint, request.client_tags
    patience_ms = request.rebalance_timeout_ms
    given = (
        ("rack_id", request.rack_id),
        ("rebalance_timeout_ms", None if patience_ms == -1 else patience_ms),
        ("topology_epoch", None if topology is None else topology.epoch),
        ("process_id", request.process_id),
        ("endpoint", None if endpoint is None else Endpoint(endpoint.host, endpoint.port)),
        ("tags", None if tags is None else {tag.key: tag.value for tag in tags}),
        ("client_id", client.client_id),
        ("client_host", client.host),
    )
    changes: dict[str, object] = {
        name: value for name, value in given if value is not None and value != getattr(member, name)
    }
    return replace(member, **changes) if changes else member  # type: ignore[arg-type]


def _hindrances(group: StreamsGroup, configured: Configured) -> list[Status]:
    found = []
    if configured.flaw is not None:
        found.append(status(configured.flaw.code, configured.flaw.detail))
    if group.shutdown_by is not None:
        detail = (
            f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        found.append(status(StatusCode.SHUTDOWN_APPLICATION, detail))
    return found


def _ids(tasks: Partitions) -> list[Response.TaskIds]:
    return [Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]
