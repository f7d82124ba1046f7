"""Joins a classic group: JoinGroup, the assignment if this member leads, SyncGroup.

It only sends requests. `ClassicMember` changes the partitions within a poll.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignors.assignor import Assignment, Assignor, MemberSubscription
from ottla.client.consumer.assignors.protocol import (
    PROTOCOL_TYPE,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.client.consumer.group.classic_membership import ClassicMembership, ClassicMemberState, Generation
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, Malformed, refused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# A join is answered when all members have joined, or after the rebalance timeout. This is added for the network.
_LAPSE_MS = 5_000

RacksByTopic = dict[str, tuple[frozenset[str], ...]]


class JoinAgain(Exception):
    """The join has failed and is retried at once."""


class GroupJoin:
    """Joins the next generation for one member."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        coordinator: GroupCoordinator,
        subscription: Subscription,
        assignors: Sequence[Assignor],
        on_joined: Callable[[], None],
        *,
        cooperative: bool,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._on_joined = on_joined
        self._cooperative = cooperative
        self._assignors = {each.name: each for each in assignors}
        self._instance: str | None = settings["group.instance.id"]
        self._rack: str | None = settings["client.rack"] or None
        self.topics: frozenset[str] | None = None  # the topics of the last join
        self.is_leader = False
        self.leader_metadata: RacksByTopic | None = (
            None  # the metadata of the leader's assignment, to detect changes
        )

    def assignor(self, name: str | None) -> Assignor:
        """Return the assignor that the coordinator chose."""
        found = self._assignors.get(name or "")
        if found is None:
            raise Malformed(f"the coordinator chose the assignor {name}, which was not offered")
        return found

    async def join(self, membership: ClassicMembership) -> bytes:
        """Return the assignment of the member. Raises JoinAgain, or the error."""
        await self._coordinator.find()
        sent = membership.generation
        answer = await self._coordinator.ask(
            self._join_request(membership),
            JoinGroupResponse,
            timeout_ms=max(
                self._settings["request.timeout.ms"], self._settings["max.poll.interval.ms"] + _LAPSE_MS
            ),
        )
        if answer.error_code:
            raise self._join_refused(membership, sent, answer)
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            raise refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, about=f"group {self._coordinator.group_id}")
        if membership.state is not ClassicMemberState.PREPARING:
            raise JoinAgain
        membership.joined(Generation(answer.generation_id, answer.member_id, answer.protocol_name))
        self._on_joined()
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
        self.is_leader = answer.leader == answer.member_id
        if self.is_leader:
            assignments = await self._assign_as_leader(answer)
        else:
            self.leader_metadata = None
        return await self._sync(membership, assignments)

    def _join_request(self, membership: ClassicMembership) -> JoinGroupRequest:
        self.topics = self._subscription.topics
        topics = tuple(sorted(self.topics))
        owned = tuple(self._subscription.assignment)
        kind = JoinGroupRequest.JoinGroupRequestProtocol
        return JoinGroupRequest(
            group_id=self._coordinator.group_id,
            session_timeout_ms=self._settings["session.timeout.ms"],
            rebalance_timeout_ms=self._settings["max.poll.interval.ms"],
            member_id=membership.generation.member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                kind(
                    name=name,
                    metadata=encode_subscription(
                        MemberSubscription(
                            topics, each.user_data(topics), owned, membership.generation.id, self._rack
                        )
                    ),
                )
                for name, each in self._assignors.items()
            ],
            reason=membership.reason,
        )

    def _join_refused(
        self, membership: ClassicMembership, sent: Generation, answer: JoinGroupResponse
    ) -> ClientError | JoinAgain:
        error = refused(answer.error_code, about=f"joining group {self._coordinator.group_id}")
        code = error.code
        self._coordinator.handle_error(code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            membership.set_member_id(answer.member_id)
            return JoinAgain()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            if membership.generation == sent:
                membership.reset("encountered UNKNOWN_MEMBER_ID from JOIN_GROUP response")
            return JoinAgain()
        return JoinAgain() if code is ErrorCode.REBALANCE_IN_PROGRESS else error

    async def _sync(
        self, membership: ClassicMembership, assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    ) -> bytes:
        sent = membership.generation
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
            raise self._sync_refused(membership, sent, answer)
        if answer.protocol_type not in (None, PROTOCOL_TYPE) or answer.protocol_name not in (
            None,
            sent.protocol,
        ):
            raise refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, about=f"group {self._coordinator.group_id}")
        if membership.generation != sent or membership.state is not ClassicMemberState.COMPLETING:
            raise JoinAgain
        membership.synced()
        return bytes(answer.assignment)

    def _sync_refused(
        self, membership: ClassicMembership, sent: Generation, answer: SyncGroupResponse
    ) -> ClientError | JoinAgain:
        error = refused(answer.error_code, about=f"joining group {self._coordinator.group_id}")
        code = error.code
        self._coordinator.handle_error(code)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if membership.generation == sent:
                membership.reset(
                    f"encountered {code.name} from SYNC_GROUP response",
                    keep_member_id=code is ErrorCode.ILLEGAL_GENERATION,
                )
            return JoinAgain()
        return JoinAgain() if code is ErrorCode.REBALANCE_IN_PROGRESS else error

    # As the leader

    async def _assign_as_leader(
        self, answer: JoinGroupResponse
    ) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        assignor = self.assignor(answer.protocol_name)
        subscriptions = {
            each.member_id: decode_subscription(bytes(each.metadata), each.group_instance_id)
            for each in answer.members
        }
        subscribed = frozenset(
            topic for subscription in subscriptions.values() for topic in subscription.topics
        )
        # The leader watches the topics of all members for changes.
        self._subscription.group_topics = subscribed
        missing = subscribed - self._cluster.topics.keys()
        if missing:
            await self._cluster.refresh(sorted(missing))
        self.leader_metadata = self.current_metadata()
        if answer.skip_assignment:
            return []
        known = {topic: racks for topic, racks in self._layout().items() if racks and topic in subscribed}
        assignment = assignor.assign(known, subscriptions)
        if self._cooperative and assignor.name != "cooperative-sticky":
            _check_cooperative(subscriptions, assignment)
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        return [
            kind(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in assignment.items()
        ]

    def current_metadata(self) -> RacksByTopic:
        """Return the metadata that a leader watches: the partitions of all topics, and their racks if it has a rack."""
        layout = self._layout()
        if self._rack is not None:
            return layout
        return {topic: (frozenset[str](),) * len(racks) for topic, racks in layout.items()}

    def _layout(self) -> RacksByTopic:
        nodes = {node.id: node.rack for node in self._cluster.connections.nodes}
        layout: RacksByTopic = {}
        for name in self._subscription.topics | self._subscription.group_topics:
            topic = self._cluster.topics.get(name)
            if topic is not None and not topic.error:
                layout[name] = tuple(
                    frozenset(rack for node in topic.leaders[number].replicas if (rack := nodes.get(node)))
                    for number in sorted(topic.leaders)
                )
        return layout


def _check_cooperative(subscriptions: Mapping[str, MemberSubscription], assignment: Assignment) -> None:
    """Raise if a custom assignor assigns partitions that their owners have not revoked yet."""
    added = {
        each for member, given in assignment.items() for each in set(given) - set(subscriptions[member].owned)
    }
    revoked = {
        each for member, given in assignment.items() for each in set(subscriptions[member].owned) - set(given)
    }
    if added & revoked:
        names = ", ".join(map(str, sorted(added & revoked)))
        raise ClientError(f"a cooperative assignor has given away what its owners still read: {names}")
