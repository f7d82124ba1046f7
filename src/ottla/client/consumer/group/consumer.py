"""Membership by the consumer protocol (KIP-848): the broker assigns, and members change over one at a time.

C1  As in the classic protocol, partitions change hands within a poll.
C2  What stays is read on without a pause. What goes is committed and let go of before the coordinator hears of it.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.commits import Identity
from ottla.client.consumer.group.callbacks import Callbacks
from ottla.client.consumer.group.epochs import EpochMember
from ottla.client.consumer.group.machine import MemberState, Share
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.consumer.subscription import Kind
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
        self._callbacks = Callbacks(self._subscription)
        self._sent: dict[str, Any] = {}
        self._committing: asyncio.Task[None] | None = None
        self._seen = -1
        self.auto: AutoCommit | None = None
        self.rebalances = 0

    # Who it is

    @property
    def metadata(self) -> GroupMetadata:
        """The member's name and epoch."""
        membership = self.membership
        epoch = membership.epoch if membership.is_member else -1
        return GroupMetadata(self._coordinator.group_id, epoch, membership.member_id, self._instance)

    def identity(self) -> Identity:
        """Return who commits; raises when the member has no epoch."""
        membership = self.membership
        if not self._subscription.is_automatic:
            return Identity(by_id=True)
        if membership.is_member:
            return Identity(membership.member_id, membership.epoch, self._instance, by_id=True)
        raise CommitFailed(
            "offsets cannot be committed: this consumer is not, or no longer, a member of its group",
            hint="poll to join; if it was put out, raise max.poll.interval.ms or lower max.poll.records",
        )

    @property
    def may_commit(self) -> bool:
        """Whether a commit stands a chance just now."""
        return not self._subscription.is_automatic or self.membership.is_member

    def commit_refused(self, code: ErrorCode, identity: Identity) -> ClientError | None:
        """Have nothing to add: the next heartbeat hears of it too."""
        return None

    # The poll's side

    async def tend(self, deadline: float) -> None:
        """Do what the group has to have done, as far as it goes before the deadline; raises what went wrong."""
        await self._callbacks.finish()
        membership = self.membership
        if membership.must_release and (self._subscription.readings or not membership.is_hopeless):
            await self._callbacks.run(self._release())
        self.raise_failure()
        if not self._subscription.is_automatic:
            return
        self._match()
        if membership.state is MemberState.UNSUBSCRIBED:
            self._join()
            self.hurry()
        elif self._has_news() and self._now() >= self._paused_until:
            self._heart.hurry(self._now())
            self.hurry()
        if membership.must_reconcile:
            await self._reconcile(deadline)

    def enforce(self, reason: str) -> None:
        """Have nothing to enforce: the coordinator rebalances when there is a reason to."""
        LOGGER.warning("enforce_rebalance has no effect with group.protocol=consumer")

    def _match(self) -> None:
        if self._subscription.kind is Kind.PATTERN and self._seen != self._cluster.version:
            self._seen = self._cluster.version
            internal = not self._settings["exclude.internal.topics"]
            self._subscription.match(
                topic.name
                for topic in self._cluster.topics.values()
                if not topic.error and (internal or not topic.is_internal)
            )

    def _has_news(self) -> bool:
        return bool(self._sent) and (
            self._sent.get("topics") != self._subscription.topics
            or self._sent.get("pattern") != self._subscription.remote_pattern
        )

    # Reconciling

    async def _reconcile(self, deadline: float) -> None:
        share, assigned = self.resolve()
        membership, subscription = self.membership, self._subscription
        if membership.current.number >= 0 and share.partitions == membership.current.partitions:
            membership.reconciled(share)
            self.hurry()
            return
        keep = set(assigned)
        revoked = [each for each in subscription.readings if each not in keep]
        if not await self._commit(revoked, deadline) or not membership.must_reconcile:
            return
        await self._callbacks.run(self._adopt(share, assigned, revoked))

    async def _commit(self, revoked: list[TopicPartition], deadline: float) -> bool:
        """Commit before anything changes hands; whether that was done in time."""
        for each in revoked:
            # Nothing more of them is handed out, or it would be read again by whoever is next.
            self._subscription.readings[each].revoking = True
        if self.auto is None or not self._subscription.readings:
            return True
        if self._committing is None:
            self._committing = asyncio.create_task(
                self.auto.finally_commit(self._settings["max.poll.interval.ms"])
            )
            self._committing.add_done_callback(lambda _: self._bell.ring())
        await asyncio.wait({self._committing}, timeout=max(0.0, deadline - self._now()))
        if not self._committing.done():
            return False
        self._committing = None
        return True

    async def _adopt(
        self, share: Share, assigned: list[TopicPartition], revoked: list[TopicPartition]
    ) -> Exception | None:
        subscription, membership = self._subscription, self.membership
        error = await self._callbacks.revoked(revoked)
        if membership.state is not MemberState.RECONCILING:
            return error
        added = [each for each in assigned if each not in subscription.readings]
        subscription.take(assigned)
        for each in added:
            subscription.readings[each].awaiting_callback = True
        failed = await self._callbacks.assigned(added)
        for each in added:
            if each in subscription.readings:
                subscription.readings[each].awaiting_callback = False
        if self.auto is not None:
            self.auto.reset(self._now())
        membership.reconciled(share)
        self.rebalances += 1
        self.hurry()
        return error or failed

    async def _release(self) -> Exception | None:
        error = None
        if self._subscription.is_automatic:
            error = await self._callbacks.lost(list(self._subscription.readings))
            self._subscription.take(())
        self.membership.released()
        self.hurry()
        return error

    # What heartbeats say

    @property
    def _response(self) -> type[Any]:
        return ConsumerGroupHeartbeatResponse

    def _forget_sent(self) -> None:
        self._sent = {}

    def _request(self) -> Message:
        membership, subscription, sent = self.membership, self._subscription, self._sent
        everything = membership.state is MemberState.JOINING
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.group_id,
            member_id=membership.member_id,
            member_epoch=membership.epoch,
            instance_id=self._instance,
        )
        if membership.state is MemberState.LEAVING:
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
            # An empty pattern takes the one before it away.
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
        """Give up all partitions and the membership; a static member may come back, unless `force` says otherwise."""
        membership = self.membership
        try:
            async with asyncio.timeout(timeout_s):
                await self._callbacks.finish()
                owned = list(self._subscription.readings)
                if self._subscription.is_automatic and owned:
                    await self._callbacks.run(self._give_up(owned))
        except TimeoutError:
            LOGGER.warning("group %s: partitions were not given up in time", self._coordinator.group_id)
        finally:
            if membership.leave(force=force):
                try:
                    async with asyncio.timeout(timeout_s):
                        await self._say_goodbye()
                except TimeoutError:
                    LOGGER.warning(
                        "group %s did not answer to its member's leave", self._coordinator.group_id
                    )

    async def _give_up(self, owned: list[TopicPartition]) -> Exception | None:
        if self.membership.is_member:
            error = await self._callbacks.revoked(owned)
        else:
            error = await self._callbacks.lost(owned)
        self._subscription.take(())
        return error

    async def close(self) -> None:
        """Leave no task behind."""
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)
        await super().close()
        await self._callbacks.close()
