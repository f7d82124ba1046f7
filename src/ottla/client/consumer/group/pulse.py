"""A classic member's sign of life: heartbeats, and the word that it leaves.

H1  Heartbeats go on between polls, and while the group is being rebalanced: the seat is kept for those who send them.
H2  They end with the seat: when it is lost, when the member leaves, or when its application no longer polls.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ottla.client.consumer.background import start
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.seat import Generation, Seat, SeatState
from ottla.client.errors import ClientError, Fenced, Refused, refused
from ottla.client.links import Links
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

LOGGER = logging.getLogger("ottla.client")
SEAT_LOST = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)
_IDLE_S = 3_600.0
_LEAVE_S = 5.0


class Pulse:
    """Keeps one seat."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        coordinator: Coordinator,
        seat: Seat,
        bell: Bell,
        links: Links,
    ) -> None:
        self._coordinator = coordinator
        self._seat = seat
        self._bell = bell
        self._instance: str | None = settings["group.instance.id"]
        self._heart = Heartbeat(
            settings["heartbeat.interval.ms"] / 1000,
            settings["session.timeout.ms"] / 1000,
            settings["max.poll.interval.ms"] / 1000,
            links.retry_backoff(),
        )
        self._news = Bell()
        self._task: asyncio.Task[None] | None = None
        self._polling = False
        self._failure: Exception | None = None
        self.heartbeats = 0

    def begin(self) -> None:
        """The seat was taken: start all clocks."""
        self._heart.begin(self._now())
        self._news.ring()
        if self._task is None or self._task.done():
            self._task = start(self._beat(), self._fail)

    def polled(self, now: float, *, polling: bool) -> None:
        """The application has begun, or ended, a poll."""
        self._polling = polling
        self._heart.polled(now)

    def raise_failure(self) -> None:
        """Raise what went wrong for good since the last time."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def lose_seat(self, code: ErrorCode, whence: str) -> None:
        """Somebody has heard that the seat is gone."""
        self._seat.reset(
            f"encountered {code.name} from {whence} response", keep_name=code is ErrorCode.ILLEGAL_GENERATION
        )
        self._bell.ring()

    async def _beat(self) -> None:
        while True:
            now = self._now()
            if not self._seat.is_taken:
                await self._news.heard(_IDLE_S)
            elif self._heart.session_over(now):
                self._coordinator.lose()
                self._heart.answered(now)
            elif self._heart.poll_overdue(now) and not self._polling:
                LOGGER.warning(
                    "group %s: no poll for longer than max.poll.interval.ms, so this consumer leaves; "
                    "raise it, or lower max.poll.records",
                    self._coordinator.group_id,
                )
                await self.leave("consumer poll timeout has expired.", force=None, timeout_s=_LEAVE_S)
            elif self._heart.is_due(now):
                await self._send(now)
            else:
                await self._news.heard(self._heart.wait_s(now, polling=self._polling))

    async def _send(self, now: float) -> None:
        sent = self._seat.generation
        self._heart.sent(now)
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
                self._heart.failed(self._now())
            else:
                self._fail(error)
            return
        self.heartbeats += 1
        if answer.error_code:
            self._refused(sent, refused(answer.error_code, about=f"group {self._coordinator.group_id}"))
        else:
            self._heart.answered(self._now())

    def _refused(self, sent: Generation, error: Refused) -> None:
        code = error.code
        self._coordinator.heed(code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._heart.answered(self._now())
            if self._seat.state is SeatState.STABLE:
                self._seat.ask_for("group is already rebalancing")
                self._bell.ring()
        elif code in SEAT_LOST:
            if self._seat.generation == sent:
                self.lose_seat(code, "HEARTBEAT")
                if isinstance(error, Fenced):
                    self._fail(error)
        elif error.retriable:
            self._heart.failed(self._now())
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        if self._seat.is_taken:
            self._seat.reset(f"encountered {type(error).__name__}")
        self._bell.ring()

    async def leave(self, reason: str, *, force: bool | None, timeout_s: float) -> None:
        """Give up the seat, and tell the coordinator, unless the member is static; `force` decides otherwise."""
        generation, state = self._seat.generation, self._seat.state
        self._seat.reset("consumer pro-actively leaving the group")
        self._bell.ring()
        wants_to = self._instance is None if force is None else force
        if not wants_to or state is SeatState.UNJOINED or not generation.member_id:
            return
        kind = LeaveGroupRequest.MemberIdentity
        request = LeaveGroupRequest(
            group_id=self._coordinator.group_id,
            members=[kind(member_id=generation.member_id, group_instance_id=self._instance, reason=reason)],
        )
        try:
            async with asyncio.timeout(timeout_s):
                await self._coordinator.ask_aside(request, LeaveGroupResponse)
        except (ClientError, TimeoutError) as error:
            LOGGER.warning(
                "group %s could not be told that its member leaves: %s", self._coordinator.group_id, error
            )

    async def close(self) -> None:
        """Leave no task behind."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
