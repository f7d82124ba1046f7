"""Joins a classic group: JoinGroup, the assignment by whoever leads, SyncGroup.

It only talks. What it means for the member's partitions is done by `classic`, within a poll.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignors.protocol import (
    PROTOCOL_TYPE,
    decode_wish,
    encode_assignment,
    encode_wish,
)
from ottla.client.consumer.assignors.spec import Assignment, Assignor, Wish
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.group.seat import Generation, Seat, SeatState
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, Malformed, refused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# A join is answered when everybody has joined, or has had the time to; a little is added for the way.
_LAPSE_MS = 5_000

Racks = dict[str, tuple[frozenset[str], ...]]


class JoinAgain(Exception):
    """The join came to nothing, and is to be tried again at once."""


class Joiner:
    """Talks a member into the next generation."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        coordinator: Coordinator,
        subscription: Subscription,
        assignors: Sequence[Assignor],
        seated: Callable[[], None],
        *,
        cooperative: bool,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._seated = seated
        self._cooperative = cooperative
        self._assignors = {each.name: each for each in assignors}
        self._instance: str | None = settings["group.instance.id"]
        self._rack: str | None = settings["client.rack"] or None
        self.topics: frozenset[str] | None = None  # those the member last joined with
        self.is_leader = False
        self.shared: Racks | None = None  # what the leader shared out, to notice when it changes

    def assignor(self, name: str | None) -> Assignor:
        """Return the assignor that the coordinator chose."""
        found = self._assignors.get(name or "")
        if found is None:
            raise Malformed(f"the coordinator chose the assignor {name}, which was not offered")
        return found

    async def join(self, seat: Seat) -> bytes:
        """Return the member's assignment; JoinAgain, or what went wrong, otherwise."""
        await self._coordinator.find()
        sent = seat.generation
        answer = await self._coordinator.ask(
            self._join_request(seat),
            JoinGroupResponse,
            timeout_ms=max(
                self._settings["request.timeout.ms"], self._settings["max.poll.interval.ms"] + _LAPSE_MS
            ),
        )
        if answer.error_code:
            raise self._join_refused(seat, sent, answer)
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            raise refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, about=f"group {self._coordinator.group_id}")
        if seat.state is not SeatState.PREPARING:
            raise JoinAgain
        seat.joined(Generation(answer.generation_id, answer.member_id, answer.protocol_name))
        self._seated()
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
        self.is_leader = answer.leader == answer.member_id
        if self.is_leader:
            assignments = await self._lead(answer)
        else:
            self.shared = None
        return await self._sync(seat, assignments)

    def _join_request(self, seat: Seat) -> JoinGroupRequest:
        self.topics = self._subscription.topics
        topics = tuple(sorted(self.topics))
        owned = tuple(self._subscription.readings)
        kind = JoinGroupRequest.JoinGroupRequestProtocol
        return JoinGroupRequest(
            group_id=self._coordinator.group_id,
            session_timeout_ms=self._settings["session.timeout.ms"],
            rebalance_timeout_ms=self._settings["max.poll.interval.ms"],
            member_id=seat.generation.member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                kind(
                    name=name,
                    metadata=encode_wish(
                        Wish(topics, each.user_data(topics), owned, seat.generation.id, self._rack)
                    ),
                )
                for name, each in self._assignors.items()
            ],
            reason=seat.reason,
        )

    def _join_refused(
        self, seat: Seat, sent: Generation, answer: JoinGroupResponse
    ) -> ClientError | JoinAgain:
        error = refused(answer.error_code, about=f"joining group {self._coordinator.group_id}")
        code = error.code
        self._coordinator.heed(code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            seat.named(answer.member_id)
            return JoinAgain()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            if seat.generation == sent:
                seat.reset("encountered UNKNOWN_MEMBER_ID from JOIN_GROUP response")
            return JoinAgain()
        return JoinAgain() if code is ErrorCode.REBALANCE_IN_PROGRESS else error

    async def _sync(
        self, seat: Seat, assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    ) -> bytes:
        sent = seat.generation
        request = SyncGroupRequest(
            group_id=self._coordinator.group_id,
            generation_id=sent.id,
            member_id=sent.member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=sent.protocol,
            assignments=assignments,
        )
        answer = await self._coordinator.ask(request, SyncGroupResponse)
        if answer.error_code:
            raise self._sync_refused(seat, sent, answer)
        if answer.protocol_type not in (None, PROTOCOL_TYPE) or answer.protocol_name not in (
            None,
            sent.protocol,
        ):
            raise refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, about=f"group {self._coordinator.group_id}")
        if seat.generation != sent or seat.state is not SeatState.COMPLETING:
            raise JoinAgain
        seat.synced()
        return bytes(answer.assignment)

    def _sync_refused(
        self, seat: Seat, sent: Generation, answer: SyncGroupResponse
    ) -> ClientError | JoinAgain:
        error = refused(answer.error_code, about=f"joining group {self._coordinator.group_id}")
        code = error.code
        self._coordinator.heed(code)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if seat.generation == sent:
                seat.reset(
                    f"encountered {code.name} from SYNC_GROUP response",
                    keep_name=code is ErrorCode.ILLEGAL_GENERATION,
                )
            return JoinAgain()
        return JoinAgain() if code is ErrorCode.REBALANCE_IN_PROGRESS else error

    # Leading

    async def _lead(self, answer: JoinGroupResponse) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        assignor = self.assignor(answer.protocol_name)
        wishes = {
            each.member_id: decode_wish(bytes(each.metadata), each.group_instance_id)
            for each in answer.members
        }
        subscribed = frozenset(topic for wish in wishes.values() for topic in wish.topics)
        # The leader watches over the topics of all members, so that a change to any of them is seen.
        self._subscription.group_topics = subscribed
        missing = subscribed - self._cluster.topics.keys()
        if missing:
            await self._cluster.refresh(sorted(missing))
        self.shared = self.what_is_shared()
        if answer.skip_assignment:
            return []
        known = {topic: racks for topic, racks in self._layout().items() if racks and topic in subscribed}
        assignment = assignor.assign(known, wishes)
        if self._cooperative and assignor.name != "cooperative-sticky":
            _check_cooperative(wishes, assignment)
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        return [
            kind(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in assignment.items()
        ]

    def what_is_shared(self) -> Racks:
        """Return what a leader watches over: the partitions of all topics, and their racks if it has one itself."""
        layout = self._layout()
        if self._rack is not None:
            return layout
        return {topic: (frozenset[str](),) * len(racks) for topic, racks in layout.items()}

    def _layout(self) -> Racks:
        nodes = {node.id: node.rack for node in self._cluster.links.nodes}
        layout: Racks = {}
        for name in self._subscription.topics | self._subscription.group_topics:
            topic = self._cluster.topics.get(name)
            if topic is not None and not topic.error:
                layout[name] = tuple(
                    frozenset(rack for node in topic.leaders[number].replicas if (rack := nodes.get(node)))
                    for number in sorted(topic.leaders)
                )
        return layout


def _check_cooperative(wishes: Mapping[str, Wish], assignment: Assignment) -> None:
    """Refuse an assignor of the application's own that gives away what somebody has not let go of."""
    added = {each for member, given in assignment.items() for each in set(given) - set(wishes[member].owned)}
    revoked = {
        each for member, given in assignment.items() for each in set(wishes[member].owned) - set(given)
    }
    if added & revoked:
        names = ", ".join(map(str, sorted(added & revoked)))
        raise ClientError(f"a cooperative assignor has given away what its owners still read: {names}")
