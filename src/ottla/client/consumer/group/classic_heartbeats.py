"""The heartbeats of a classic member, and its LeaveGroup request.

H1  Heartbeats are sent between polls and during rebalances, to keep the membership.
H2  They end when the membership is lost, when the member leaves, or when its application no longer polls.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ottla.client.connections import ClientConnections
from ottla.client.consumer.background import start
from ottla.client.consumer.group.classic_membership import ClassicMembership, ClassicMemberState, Generation
from ottla.client.consumer.group.heartbeat_timers import HeartbeatTimers
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, Fenced, Refused, refused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

LOGGER = logging.getLogger("ottla.client")
MEMBERSHIP_LOST = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)
_IDLE_S = 3_600.0
_LEAVE_S = 5.0


class ClassicHeartbeats:
    """Sends the heartbeats of one member."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        coordinator: GroupCoordinator,
        membership: ClassicMembership,
        wake_event: WakeEvent,
        connections: ClientConnections,
    ) -> None:
        self._coordinator = coordinator
        self._membership = membership
        self._wake_event = wake_event
        self._instance: str | None = settings["group.instance.id"]
        self._timers = HeartbeatTimers(
            settings["heartbeat.interval.ms"] / 1000,
            settings["session.timeout.ms"] / 1000,
            settings["max.poll.interval.ms"] / 1000,
            connections.retry_backoff(),
        )
        self._heartbeat_event = WakeEvent()
        self._task: asyncio.Task[None] | None = None
        self._polling = False
        self._failure: Exception | None = None
        self.heartbeats = 0

    def begin(self) -> None:
        """Start all timers after a join."""
        self._timers.begin(self._now())
        self._heartbeat_event.set()
        if self._task is None or self._task.done():
            self._task = start(self._run_heartbeats(), self._fail)

    def polled(self, now: float, *, polling: bool) -> None:
        """Handle the start or the end of a poll."""
        self._polling = polling
        self._timers.polled(now)

    def raise_failure(self) -> None:
        """Raise the last error that is not retriable."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def lose_membership(self, code: ErrorCode, api: str) -> None:
        """Handle an error code that means that the membership is lost."""
        self._membership.reset(
            f"encountered {code.name} from {api} response",
            keep_member_id=code is ErrorCode.ILLEGAL_GENERATION,
        )
        self._wake_event.set()

    async def _run_heartbeats(self) -> None:
        while True:
            now = self._now()
            if not self._membership.is_joined:
                await self._heartbeat_event.wait(_IDLE_S)
            elif self._timers.session_over(now):
                self._coordinator.mark_unknown()
                self._timers.answered(now)
            elif self._timers.poll_overdue(now) and not self._polling:
                LOGGER.warning(
                    "group %s: no poll for longer than max.poll.interval.ms, so this consumer leaves; "
                    "raise it, or lower max.poll.records",
                    self._coordinator.group_id,
                )
                await self.leave("consumer poll timeout has expired.", force=None, timeout_s=_LEAVE_S)
            elif self._timers.is_due(now):
                await self._send(now)
            else:
                await self._heartbeat_event.wait(self._timers.wait_s(now, polling=self._polling))

    async def _send(self, now: float) -> None:
        sent = self._membership.generation
        self._timers.sent(now)
        request = HeartbeatRequest(
            group_id=self._coordinator.group_id,
            generation_id=sent.id,
            member_id=sent.member_id,
            group_instance_id=self._instance,
        )
        try:
            answer = await self._coordinator.ask(request, HeartbeatResponse)
        except ClientError as error:
            if error.retriable:
                self._timers.failed(self._now())
            else:
                self._fail(error)
            return
        self.heartbeats += 1
        if answer.error_code:
            self._refused(sent, refused(answer.error_code, about=f"group {self._coordinator.group_id}"))
        else:
            self._timers.answered(self._now())

    def _refused(self, sent: Generation, error: Refused) -> None:
        code = error.code
        self._coordinator.handle_error(code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._timers.answered(self._now())
            if self._membership.state is ClassicMemberState.STABLE:
                self._membership.request_rejoin("group is already rebalancing")
                self._wake_event.set()
        elif code in MEMBERSHIP_LOST:
            if self._membership.generation == sent:
                self.lose_membership(code, "HEARTBEAT")
                if isinstance(error, Fenced):
                    self._fail(error)
        elif error.retriable:
            self._timers.failed(self._now())
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        if self._membership.is_joined:
            self._membership.reset(f"encountered {type(error).__name__}")
        self._wake_event.set()

    async def leave(self, reason: str, *, force: bool | None, timeout_s: float) -> None:
        """Leave the group. A static member sends no LeaveGroup request, unless `force` says so."""
        generation, state = self._membership.generation, self._membership.state
        self._membership.reset("consumer pro-actively leaving the group")
        self._wake_event.set()
        wants_to = self._instance is None if force is None else force
        if not wants_to or state is ClassicMemberState.UNJOINED or not generation.member_id:
            return
        kind = LeaveGroupRequest.MemberIdentity
        request = LeaveGroupRequest(
            group_id=self._coordinator.group_id,
            members=[kind(member_id=generation.member_id, group_instance_id=self._instance, reason=reason)],
        )
        try:
            async with asyncio.timeout(timeout_s):
                await self._coordinator.ask_on_shared_connection(request, LeaveGroupResponse)
        except (ClientError, TimeoutError) as error:
            LOGGER.warning(
                "group %s could not be told that its member leaves: %s", self._coordinator.group_id, error
            )

    async def close(self) -> None:
        """Stop the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
