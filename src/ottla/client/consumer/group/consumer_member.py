"""Membership by the consumer protocol (KIP-848): the broker assigns, and members reconcile one at a time.

C1  As in the classic protocol, partitions change hands within a poll.
C2  Partitions that stay are read without a pause. Others are committed and revoked before the next heartbeat.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.commits import CommitIdentity
from ottla.client.consumer.group.callbacks import RebalanceCallbacks
from ottla.client.consumer.group.epoch_member import EpochMember
from ottla.client.consumer.group.epoch_membership import EpochMemberState, LocalAssignment
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.consumer.subscription import SubscriptionType
from ottla.client.errors import ClientError, CommitFailed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from ottla.client.consumer.autocommit import AutoCommit

LOGGER = logging.getLogger("ottla.client")


class ConsumerMember(EpochMember):
    """One member of a consumer group."""

    def __init__(self, settings: Any, *parts: Any) -> None:
        self._instance: str | None = settings["group.instance.id"]
        super().__init__(settings, *parts, static=self._instance is not None)
        self._callbacks = RebalanceCallbacks(self._subscription)
        self._sent: dict[str, Any] = {}
        self._committing: asyncio.Task[None] | None = None
        self._metadata_version = -1
        self.auto_commit: AutoCommit | None = None
        self.rebalances = 0

    # Identity

    @property
    def metadata(self) -> GroupMetadata:
        """The member's name and epoch."""
        membership = self.membership
        epoch = membership.epoch if membership.is_member else -1
        return GroupMetadata(self._coordinator.group_id, epoch, membership.member_id, self._instance)

    def identity(self) -> CommitIdentity:
        """Return the identity for a commit. Raises if the member has no epoch."""
        membership = self.membership
        if not self._subscription.is_automatic:
            return CommitIdentity(by_id=True)
        if membership.is_member:
            return CommitIdentity(membership.member_id, membership.epoch, self._instance, by_id=True)
        raise CommitFailed(
            "offsets cannot be committed: this consumer is not, or no longer, a member of its group",
            hint="poll to join; if it was put out, raise max.poll.interval.ms or lower max.poll.records",
        )

    @property
    def may_commit(self) -> bool:
        """Whether a commit can succeed now."""
        return not self._subscription.is_automatic or self.membership.is_member

    def commit_refused(self, code: ErrorCode, identity: CommitIdentity) -> ClientError | None:
        """Return None: the next heartbeat gets the same error."""
        return None

    # Calls of poll

    async def maintain(self, deadline: float) -> None:
        """Reconcile the assignment until the deadline. Raises the errors of the group."""
        await self._callbacks.finish()
        membership = self.membership
        if membership.must_release and (self._subscription.assignment or not membership.is_fatal):
            await self._callbacks.run(self._release())
        self.raise_failure()
        if not self._subscription.is_automatic:
            return
        self._match_pattern()
        if membership.state is EpochMemberState.UNSUBSCRIBED:
            self._join()
            self.wake_heartbeats()
        elif self._subscription_changed() and self._now() >= self._paused_until:
            self._timers.send_now(self._now())
            self.wake_heartbeats()
        if membership.must_reconcile:
            await self._reconcile(deadline)

    def request_rebalance(self, reason: str) -> None:
        """Do nothing: the coordinator decides about rebalances."""
        LOGGER.warning("enforce_rebalance has no effect with group.protocol=consumer")

    def _match_pattern(self) -> None:
        if (
            self._subscription.kind is SubscriptionType.PATTERN
            and self._metadata_version != self._cluster.version
        ):
            self._metadata_version = self._cluster.version
            internal = not self._settings["exclude.internal.topics"]
            self._subscription.match(
                topic.name
                for topic in self._cluster.topics.values()
                if not topic.error and (internal or not topic.is_internal)
            )

    def _subscription_changed(self) -> bool:
        return bool(self._sent) and (
            self._sent.get("topics") != self._subscription.topics
            or self._sent.get("pattern") != self._subscription.remote_pattern
        )

    # Reconciling

    async def _reconcile(self, deadline: float) -> None:
        local_assignment, assigned = self.resolve()
        membership, subscription = self.membership, self._subscription
        if membership.current.number >= 0 and local_assignment.partitions == membership.current.partitions:
            membership.reconciled(local_assignment)
            self.wake_heartbeats()
            return
        keep = set(assigned)
        revoked = [each for each in subscription.assignment if each not in keep]
        if not await self._commit(revoked, deadline) or not membership.must_reconcile:
            return
        await self._callbacks.run(self._adopt(local_assignment, assigned, revoked))

    async def _commit(self, revoked: list[TopicPartition], deadline: float) -> bool:
        """Commit before partitions are revoked. Return whether it was done before the deadline."""
        for each in revoked:
            # No more records are returned, because the next owner would read them again.
            self._subscription.assignment[each].revoking = True
        if self.auto_commit is None or not self._subscription.assignment:
            return True
        if self._committing is None:
            self._committing = asyncio.create_task(
                self.auto_commit.commit_before_revocation(self._settings["max.poll.interval.ms"])
            )
            self._committing.add_done_callback(lambda _: self._wake_event.set())
        await asyncio.wait({self._committing}, timeout=max(0.0, deadline - self._now()))
        if not self._committing.done():
            return False
        self._committing = None
        return True

    async def _adopt(
        self, local_assignment: LocalAssignment, assigned: list[TopicPartition], revoked: list[TopicPartition]
    ) -> Exception | None:
        subscription, membership = self._subscription, self.membership
        error = await self._callbacks.revoked(revoked)
        if membership.state is not EpochMemberState.RECONCILING:
            return error
        added = [each for each in assigned if each not in subscription.assignment]
        subscription.assign_from_group(assigned)
        for each in added:
            subscription.assignment[each].awaiting_callback = True
        failed = await self._callbacks.assigned(added)
        for each in added:
            if each in subscription.assignment:
                subscription.assignment[each].awaiting_callback = False
        if self.auto_commit is not None:
            self.auto_commit.reset(self._now())
        membership.reconciled(local_assignment)
        self.rebalances += 1
        self.wake_heartbeats()
        return error or failed

    async def _release(self) -> Exception | None:
        error = None
        if self._subscription.is_automatic:
            error = await self._callbacks.lost(list(self._subscription.assignment))
            self._subscription.assign_from_group(())
        self.membership.released()
        self.wake_heartbeats()
        return error

    # Heartbeats

    @property
    def _response(self) -> type[Any]:
        return ConsumerGroupHeartbeatResponse

    def _forget_sent(self) -> None:
        self._sent = {}

    def _request(self) -> Message:
        membership, subscription, sent = self.membership, self._subscription, self._sent
        everything = membership.state is EpochMemberState.JOINING
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.group_id,
            member_id=membership.member_id,
            member_epoch=membership.epoch,
            instance_id=self._instance,
        )
        if membership.state is EpochMemberState.LEAVING:
            return request
        if everything or "timeout" not in sent:
            request.rebalance_timeout_ms = self._settings["max.poll.interval.ms"]
            request.server_assignor = self._settings["group.remote.assignor"]
            sent["timeout"] = True
        if everything:
            request.rack_id = self._settings["client.rack"] or None
        if everything or sent.get("topics") != subscription.topics:
            request.subscribed_topic_names = sorted(subscription.topics)
            sent["topics"] = subscription.topics
        pattern = subscription.remote_pattern
        if (everything and pattern is not None) or sent.get("pattern") != pattern:
            # An empty pattern removes the one before it.
            request.subscribed_topic_regex = pattern or ""
            sent["pattern"] = pattern
        if everything or sent.get("share") != membership.current:
            kind = ConsumerGroupHeartbeatRequest.TopicPartitions
            request.topic_partitions = [
                kind(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in membership.current.partitions.items()
            ]
            sent["share"] = membership.current
        return request

    # Leaving

    async def leave(self, reason: str, *, force: bool | None, timeout_s: float) -> None:
        """Revoke all partitions and leave the group. A static member may return, unless `force` is set."""
        membership = self.membership
        try:
            async with asyncio.timeout(timeout_s):
                await self._callbacks.finish()
                owned = list(self._subscription.assignment)
                if self._subscription.is_automatic and owned:
                    await self._callbacks.run(self._give_up(owned))
        except TimeoutError:
            LOGGER.warning("group %s: partitions were not given up in time", self._coordinator.group_id)
        finally:
            if membership.leave(force=force):
                try:
                    async with asyncio.timeout(timeout_s):
                        await self._send_leave()
                except TimeoutError:
                    LOGGER.warning(
                        "group %s did not answer to its member's leave", self._coordinator.group_id
                    )

    async def _give_up(self, owned: list[TopicPartition]) -> Exception | None:
        if self.membership.is_member:
            error = await self._callbacks.revoked(owned)
        else:
            error = await self._callbacks.lost(owned)
        self._subscription.assign_from_group(())
        return error

    async def close(self) -> None:
        """Stop all tasks."""
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)
        await super().close()
        await self._callbacks.close()
