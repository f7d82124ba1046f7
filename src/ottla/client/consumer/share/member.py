"""Membership in a share group: heartbeats with the subscription, and the assignment from their responses."""

import asyncio
import logging
from typing import Any

from ottla.client.consumer.group.epoch_member import EpochMember
from ottla.client.consumer.group.epoch_membership import EpochMemberState
from ottla.wire.message import Message
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

LOGGER = logging.getLogger("ottla.client")


class ShareMember(EpochMember):
    """One member of a share group."""

    _topics: frozenset[str] | None = None  # the topics of the last heartbeat

    async def maintain(self) -> None:
        """Join the group and apply its assignments. Raises the errors of the group."""
        membership, subscription = self.membership, self._subscription
        if membership.must_release:
            subscription.assign_from_group(())
            membership.released()
            self.wake_heartbeats()
        self.raise_failure()
        if membership.state is EpochMemberState.UNSUBSCRIBED:
            self._join()
            self.wake_heartbeats()
        elif (
            self._topics is not None
            and self._topics != subscription.topics
            and self._now() >= self._paused_until
        ):
            self._timers.send_now(self._now())
            self.wake_heartbeats()
        if membership.must_reconcile:
            # Partitions are shared, so nothing has to be revoked first.
            local_assignment, assigned = self.resolve()
            subscription.assign_from_group(assigned)
            membership.reconciled(local_assignment)
            self.wake_heartbeats()

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
        if membership.state is EpochMemberState.LEAVING:
            return request
        if membership.state is EpochMemberState.JOINING or self._topics is None:
            request.rack_id = self._settings["client.rack"] or None
        if membership.state is EpochMemberState.JOINING or self._topics != self._subscription.topics:
            request.subscribed_topic_names = sorted(self._subscription.topics)
            self._topics = self._subscription.topics
        return request

    async def leave(self, timeout_s: float) -> None:
        """Leave the group."""
        if self.membership.leave():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._send_leave()
            except TimeoutError:
                LOGGER.warning("group %s did not answer to its member's leave", self._coordinator.group_id)
