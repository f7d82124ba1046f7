"""Membership in a share group: heartbeats that say what is subscribed to, and an assignment that is simply taken."""

import asyncio
import logging
from typing import Any

from ottla.client.consumer.group.epochs import EpochMember
from ottla.client.consumer.group.machine import MemberState
from ottla.wire.message import Message
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

LOGGER = logging.getLogger("ottla.client")


class ShareMember(EpochMember):
    """One member of a share group."""

    _topics: frozenset[str] | None = None  # those the coordinator was told of

    async def tend(self) -> None:
        """Do what the group has to have done; raises what went wrong."""
        membership, subscription = self.membership, self._subscription
        if membership.must_release:
            subscription.take(())
            membership.released()
            self.hurry()
        self.raise_failure()
        if membership.state is MemberState.UNSUBSCRIBED:
            self._join()
            self.hurry()
        elif (
            self._topics is not None
            and self._topics != subscription.topics
            and self._now() >= self._paused_until
        ):
            self._heart.hurry(self._now())
            self.hurry()
        if membership.must_reconcile:
            # Others read the same partitions anyway, so nobody has to be told, or waited for.
            share, assigned = self.resolve()
            subscription.take(assigned)
            membership.reconciled(share)
            self.hurry()

    @property
    def _response(self) -> type[Any]:
        return ShareGroupHeartbeatResponse

    def _forget_sent(self) -> None:
        self._topics = None

    def _request(self) -> Message:
        membership = self.membership
        request = ShareGroupHeartbeatRequest(
            group_id=self._coordinator.group_id,
            member_id=membership.member_id,
            member_epoch=membership.epoch,
        )
        if membership.state is MemberState.LEAVING:
            return request
        if membership.state is MemberState.JOINING or self._topics is None:
            request.rack_id = self._settings["client.rack"] or None
        if membership.state is MemberState.JOINING or self._topics != self._subscription.topics:
            request.subscribed_topic_names = sorted(self._subscription.topics)
            self._topics = self._subscription.topics
        return request

    async def leave(self, timeout_s: float) -> None:
        """Cease to be a member."""
        if self.membership.leave():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._say_goodbye()
            except TimeoutError:
                LOGGER.warning("group %s did not answer to its member's leave", self._coordinator.group_id)
