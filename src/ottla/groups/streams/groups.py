"""Streams groups of one partition of `__consumer_offsets`: their commands, their records, their timers.

L1  Groups change in `apply` alone. A command leaves records, and timers; a timer of what has gone does nothing.
L2  What is wrong with a request is said in its answer.
"""

from collections.abc import Iterable

from ottla.groups.description import ALL
from ottla.groups.shelf import Shelf, TimerKey
from ottla.groups.streams.departure import fence
from ottla.groups.streams.describe import DescribedGroup, describe
from ottla.groups.streams.desk import Desk
from ottla.groups.streams.fold import fold
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import Heard, heartbeat, leave
from ottla.groups.streams.member import LEAVES, MemberState
from ottla.groups.streams.request import check_request
from ottla.groups.streams.target import target_records, targets
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Client, KeyedRecord
from ottla.wire.errors import BrokerError
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from ottla.wire.records.streams_group import StreamsGroupMetadataKey


class StreamsGroups:
    """All streams groups of a partition."""

    __slots__ = ("_desk",)

    def __init__(self, shelf: Shelf) -> None:
        self._desk = Desk(shelf)

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client: Client, now: int) -> Decision[Heard]:
        """Serve StreamsGroupHeartbeat, versions 0 and 1; to make the topics that are missing is the caller's."""
        try:
            check_request(request)
            if request.member_epoch == LEAVES:
                return leave(self._desk, request)
            return heartbeat(self._desk, request, client, now)
        except BrokerError as error:
            refused = StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            return Decision(Heard(refused))

    def describe(
        self, group_ids: Iterable[str], members: slice = ALL, *, described: bool
    ) -> list[DescribedGroup]:
        """Serve StreamsGroupDescribe, versions 0 and 1; which operations are allowed is the caller's to add.

        With `described` the topology's description is asked for (KIP-1331), of which none is kept here.
        """
        return [describe(self._desk, group_id, members, described=described) for group_id in group_ids]

    def apply(self, record: KeyedRecord) -> None:
        """Take in one of the records of streams groups."""
        groups = self._desk.shelf.groups
        fold(groups, record)
        if isinstance(record.key, StreamsGroupMetadataKey) and record.key.group_id not in groups:
            self._desk.forget(record.key.group_id)

    def lead(self, now: int) -> Decision[None]:
        """Begin to lead: all members have a whole session to be heard from, and time to give up what they must."""
        for group in self._desk.shelf.groups.values():
            if isinstance(group, StreamsGroup):
                for member in group.members.values():
                    self._desk.await_heartbeat(group.id, member.id, now)
                    if member.state is MemberState.UNREVOKED:
                        self._desk.await_revocation(group.id, member, now)
        return Decision(None)

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Do what is due: put out a member that is late, or compute the assignment that waited for more members."""
        _, group_id, what, member_id = key
        group = self._desk.shelf.groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            return Decision(None)
        if what == "initial":
            return Decision(None, tuple(self._first_target(group, now)))
        member = group.members.get(member_id)
        if member is None or (what == "rebalance" and member.state is not MemberState.UNREVOKED):
            return Decision(None)
        return Decision(None, tuple(fence(group, member)))

    def _first_target(self, group: StreamsGroup, now: int) -> list[KeyedRecord]:
        topology = group.topology
        if not group.members or topology is None or group.epoch <= group.assignment_epoch:
            return []
        if not self._desk.may_assign(group, now):
            return []
        try:
            configured = group.configure(topology, self._desk.shelf.topics)
        except BrokerError:
            # Whoever is heard from next is told.
            return []
        wanted = targets(group, group.members, topology, configured, group.configs)
        return target_records(group, group.epoch, wanted, now)
