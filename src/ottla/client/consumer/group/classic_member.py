"""Membership by the classic protocol: one member computes the assignment for all.

C1  Partitions change hands within a poll, so an application never finds them gone between two polls.
C2  Heartbeats and the requests of a join continue between polls. If a poll ends during a rebalance, the next poll
    continues it.
C3  A member whose application does not poll within max.poll.interval.ms leaves its group, and joins again with the
    next poll. Its partitions are lost then.

    eager          revoke all, join, assign
    cooperative    join, revoke what went to others, join again, assign what was added
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.consumer.assignors.protocol import decode_assignment
from ottla.client.consumer.assignors.table import chosen, is_cooperative
from ottla.client.consumer.commits import CommitIdentity
from ottla.client.consumer.group.callbacks import RebalanceCallbacks
from ottla.client.consumer.group.classic_heartbeats import MEMBERSHIP_LOST, ClassicHeartbeats
from ottla.client.consumer.group.classic_membership import ClassicMembership, ClassicMemberState
from ottla.client.consumer.group.join import GroupJoin, JoinAgain
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.consumer.subscription import Subscription, SubscriptionType
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, CommitFailed, Malformed, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.consumer.autocommit import AutoCommit

LOGGER = logging.getLogger("ottla.client")


class ClassicMember:
    """One member of a classic group."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        coordinator: GroupCoordinator,
        subscription: Subscription,
        wake_event: WakeEvent,
        connections: ClientConnections,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._wake_event = wake_event
        self._instance: str | None = settings["group.instance.id"]
        assignors = chosen(settings["partition.assignment.strategy"])
        self.cooperative = is_cooperative(assignors)
        self._callbacks = RebalanceCallbacks(subscription)
        self._backoff = connections.retry_backoff()
        self.membership = ClassicMembership()
        self.heartbeat_loop = ClassicHeartbeats(
            settings, coordinator, self.membership, wake_event, connections
        )
        self._joiner = GroupJoin(
            settings,
            cluster,
            coordinator,
            subscription,
            assignors,
            self.heartbeat_loop.begin,
            cooperative=self.cooperative,
        )
        self._joining: asyncio.Task[bytes] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._metadata_version = -1  # version of the metadata that was last looked at
        self.auto_commit: AutoCommit | None = None
        self.rebalances = 0

    # Identity

    @property
    def metadata(self) -> GroupMetadata:
        """The member's name and generation."""
        generation = self.membership.generation
        return GroupMetadata(self._coordinator.group_id, generation.id, generation.member_id, self._instance)

    def identity(self) -> CommitIdentity:
        """Return the identity for a commit. Raises if the member is not in a generation."""
        if not self._subscription.is_automatic:
            return CommitIdentity()
        if self.membership.state is ClassicMemberState.STABLE:
            return CommitIdentity(
                self.membership.generation.member_id, self.membership.generation.id, self._instance
            )
        if self.membership.is_rebalancing:
            raise _rebalancing()
        raise CommitFailed(
            "offsets cannot be committed: this consumer is not, or no longer, a member of its group",
            hint="poll to join; if it was put out, raise max.poll.interval.ms or lower max.poll.records",
        )

    @property
    def may_commit(self) -> bool:
        """Whether a commit can succeed now."""
        return not self._subscription.is_automatic or self.membership.state is ClassicMemberState.STABLE

    def commit_refused(self, code: ErrorCode, identity: CommitIdentity) -> ClientError | None:
        """Handle a refused commit. Return the error to raise, or None for that of the code."""
        generation = self.membership.generation
        unchanged = (generation.member_id, generation.id) == (identity.member_id, identity.generation)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.membership.request_rejoin("offset commit failed since group is already rebalancing")
            self._wake_event.set()
            return _rebalancing()
        if code in MEMBERSHIP_LOST and identity.member_id:
            if not unchanged and self.membership.state is ClassicMemberState.PREPARING:
                return _rebalancing()
            if code is ErrorCode.FENCED_INSTANCE_ID and unchanged:
                return None
            if unchanged:
                self.heartbeat_loop.lose_membership(code, "OFFSET_COMMIT")
            return CommitFailed(f"offsets were not committed: the group has moved on ({code.name})")
        return None

    # Calls of poll

    def poll_started(self, now: float) -> None:
        """Handle the start of a poll: the application is alive."""
        self.heartbeat_loop.polled(now, polling=True)

    def poll_ended(self, now: float) -> None:
        """Handle the end of a poll: max.poll.interval.ms begins."""
        self.heartbeat_loop.polled(now, polling=False)

    async def maintain(self, deadline: float) -> None:
        """Take part in rebalances until the deadline. Raises the errors of the group."""
        self.heartbeat_loop.raise_failure()
        await self._callbacks.finish()
        self._look_at_metadata()
        if not self._subscription.is_automatic:
            return
        while self._must_join():
            if self._joining is not None:
                if not self._joining.done():
                    return
                await self._complete()
                continue
            if self._loop_time() < self._not_before:
                return
            if self.membership.must_prepare and not await self._prepare(deadline):
                return
            self._begin()
            return

    def request_rebalance(self, reason: str) -> None:
        """Start a rebalance with the next poll."""
        self.membership.request_rejoin(reason or "rebalance enforced by user")
        self._wake_event.set()

    def _must_join(self) -> bool:
        topics = self._joiner.topics
        if topics is not None and topics != self._subscription.topics:
            self.membership.request_rejoin("subscription has changed")
        return self.membership.must_join or self._joining is not None

    def _look_at_metadata(self) -> None:
        if self._metadata_version == self._cluster.version:
            return
        self._metadata_version = self._cluster.version
        if self._subscription.kind is SubscriptionType.PATTERN:
            internal = not self._settings["exclude.internal.topics"]
            self._subscription.match(
                topic.name
                for topic in self._cluster.topics.values()
                if not topic.error and (internal or not topic.is_internal)
            )
        if (
            self._joiner.leader_metadata is not None
            and self._joiner.leader_metadata != self._joiner.current_metadata()
        ):
            self._joiner.leader_metadata = None
            self.membership.request_rejoin("cached metadata has changed")

    # Revoking partitions

    async def _prepare(self, deadline: float) -> bool:
        """Commit, and revoke partitions as the protocol requires. Return whether it was done before the deadline."""
        if self.auto_commit is not None and self._subscription.assignment:
            if self._committing is None:
                if not self.cooperative:
                    # No more records are returned, because the next owner would read them again.
                    for assigned in self._subscription.assignment.values():
                        assigned.revoking = True
                self._committing = asyncio.create_task(
                    self.auto_commit.commit_before_revocation(self._settings["max.poll.interval.ms"])
                )
                self._committing.add_done_callback(lambda _: self._wake_event.set())
            await asyncio.wait({self._committing}, timeout=max(0.0, deadline - self._loop_time()))
            if not self._committing.done():
                return False
            self._committing = None
        self.membership.must_prepare = False
        await self._callbacks.run(self._give_up())
        return True

    async def _give_up(self) -> Exception | None:
        subscription = self._subscription
        owned = list(subscription.assignment)
        error = None
        if self.membership.is_lost:
            error = await self._callbacks.lost(owned)
            subscription.assign_from_group(())
        elif not self.cooperative:
            error = await self._callbacks.revoked(owned)
            subscription.assign_from_group(())
        else:
            gone = [each for each in owned if not subscription.wants(each.topic)]
            if gone:
                error = await self._callbacks.revoked(gone)
                subscription.assign_from_group([each for each in owned if each not in set(gone)])
        self._joiner.is_leader = False
        self._joiner.leader_metadata = None
        subscription.group_topics = frozenset()
        return error

    # Joining

    def _begin(self) -> None:
        self.membership.begin()
        self._joining = asyncio.create_task(self._joiner.join(self.membership))
        self._joining.add_done_callback(self._joined)

    def _joined(self, joining: "asyncio.Task[bytes]") -> None:
        if not joining.cancelled():
            joining.exception()
        self._wake_event.set()

    async def _complete(self) -> None:
        assert self._joining is not None
        joining, self._joining = self._joining, None
        try:
            assignment = joining.result()
        except JoinAgain:
            self.membership.request_rejoin("rebalance failed")
            return
        except ClientError as error:
            self.membership.request_rejoin(f"rebalance failed due to {type(error).__name__}")
            if self.membership.state is not ClassicMemberState.UNJOINED:
                self.membership.state = ClassicMemberState.UNJOINED
            if not error.retriable:
                raise
            self._wait(self._backoff.failed())
            return
        self._backoff.succeeded()
        if self.membership.state is not ClassicMemberState.STABLE:
            # A heartbeat has lost the membership meanwhile.
            self.membership.reset("rebalance failed since the membership was lost before it completed")
            return
        self.membership.must_prepare = True
        await self._callbacks.run(self._adopt(assignment))

    def _wait(self, pause_s: float) -> None:
        self._not_before = self._loop_time() + pause_s
        asyncio.get_running_loop().call_later(pause_s, self._wake_event.set)

    async def _adopt(self, data: bytes) -> Exception | None:
        """Apply an assignment, and revoke the partitions that are not in it."""
        subscription, generation = self._subscription, self.membership.generation
        try:
            assignor = self._joiner.assignor(generation.protocol)
            assigned = sorted(decode_assignment(data))
        except Malformed as unreadable:
            # Without another join the consumer would never get partitions.
            self.membership.request_rejoin("received assignment cannot be read")
            return unreadable
        if not all(subscription.wants(each.topic) for each in assigned):
            self.membership.request_rejoin("received assignment does not match the current subscription")
            return None
        owned = list(subscription.assignment)
        error = None
        if self.cooperative:
            revoked = [each for each in owned if each not in set(assigned)]
            if revoked:
                error = await self._callbacks.revoked(revoked)
                self.membership.request_rejoin("need to revoke partitions and re-join")
        if subscription.kind is SubscriptionType.PATTERN:
            # The leader may know matching topics that are not in the metadata of this client yet.
            subscription.topics |= {each.topic for each in assigned}
            self._joiner.topics = (self._joiner.topics or frozenset()) | subscription.topics
        assignor.adopt(assigned, generation.id)
        if self.auto_commit is not None:
            self.auto_commit.reset(self._loop_time())
        added = [each for each in assigned if each not in set(owned)]
        subscription.assign_from_group(assigned)
        for each in added:
            subscription.assignment[each].awaiting_callback = True
        failed = await self._callbacks.assigned(added)
        for each in added:
            if each in subscription.assignment:
                subscription.assignment[each].awaiting_callback = False
        self.rebalances += 1
        return error or failed

    # Leaving

    async def leave(self, reason: str, *, force: bool | None, timeout_s: float) -> None:
        """Revoke all partitions, and leave the group if the member is dynamic, or as `force` says."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._callbacks.finish()
                joining, self._joining = self._joining, None
                if joining is not None:
                    joining.cancel()
                    await asyncio.wait({joining})
                if self._subscription.is_automatic and self._subscription.assignment:
                    await self._callbacks.run(self._release(list(self._subscription.assignment)))
        except TimeoutError:
            LOGGER.warning("group %s: partitions were not given up in time", self._coordinator.group_id)
        finally:
            await self.heartbeat_loop.leave(reason, force=force, timeout_s=timeout_s)
            self._joiner.topics = None

    async def _release(self, owned: list[TopicPartition]) -> Exception | None:
        if self.membership.is_lost or self.membership.is_rebalancing:
            error = await self._callbacks.lost(owned)
        else:
            error = await self._callbacks.revoked(owned)
        self._subscription.assign_from_group(())
        return error

    async def close(self) -> None:
        """Stop all tasks."""
        await self.heartbeat_loop.close()
        tasks = [each for each in (self._joining, self._committing) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._callbacks.close()

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()


def _rebalancing() -> ClientError:
    return refused(
        ErrorCode.REBALANCE_IN_PROGRESS,
        "offsets cannot be committed while the group is being rebalanced",
        hint="poll until the rebalance is through, then commit again",
    )
