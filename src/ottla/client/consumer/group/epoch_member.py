"""Sends the heartbeats of a member whose group has member epochs, and handles the responses.

Consumer groups and share groups share this. Their subclasses make the requests.
"""

import asyncio
import base64
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.consumer.background import start
from ottla.client.consumer.group.epoch_membership import EpochMembership, EpochMemberState, LocalAssignment
from ottla.client.consumer.group.heartbeat_timers import HeartbeatTimers
from ottla.client.consumer.group_coordinator import MOVED, GroupCoordinator
from ottla.client.consumer.subscription import Subscription
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, Unsupported, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.world.entropy import Entropy

LOGGER = logging.getLogger("ottla.client")
_IDLE_S = 3_600.0
_NEVER_S = 1e9
_FENCING = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class EpochMember(ABC):
    """One member whose coordinator assigns. Subclasses say what a heartbeat looks like."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        coordinator: GroupCoordinator,
        subscription: Subscription,
        wake_event: WakeEvent,
        connections: ClientConnections,
        entropy: Entropy,
        *,
        static: bool = False,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._wake_event = wake_event
        name = base64.urlsafe_b64encode(entropy.uuid()).rstrip(b"=").decode()
        self.membership = EpochMembership(name, static=static)
        self._timers = HeartbeatTimers(
            0.0, _NEVER_S, settings["max.poll.interval.ms"] / 1000, connections.retry_backoff()
        )
        self._heartbeat_event = WakeEvent()
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._resolving: asyncio.Task[None] | None = None
        self._names: dict[bytes, str] = {}
        self._polling = False
        self._paused_until = 0.0
        self._moves = 0  # of the coordinator, in a row
        self.failure: Exception | None = None
        self.heartbeats = 0

    # Defined by subclasses

    @abstractmethod
    def _request(self) -> Message:
        """Return the next heartbeat."""

    @abstractmethod
    def _forget_sent(self) -> None:
        """Send all fields again with the next heartbeat."""

    @property
    @abstractmethod
    def _response(self) -> type[Any]:
        """The response to it."""

    # Calls of poll

    def poll_started(self, now: float) -> None:
        """Handle the start of a poll: the application is alive."""
        self._polling = True
        self._timers.polled(now)

    def poll_ended(self, now: float) -> None:
        """Handle the end of a poll: max.poll.interval.ms begins."""
        self._polling = False
        self._timers.polled(now)

    def raise_failure(self) -> None:
        """Raise the last error. A fatal one is raised each time."""
        failure = self.failure
        if failure is not None:
            if self.membership.state is not EpochMemberState.FATAL:
                self.failure = None
            raise failure

    def _join(self) -> None:
        self.membership.join()
        if self._heartbeat_task is None:
            self._timers.begin(self._now())
            self._heartbeat_task = start(self._run_heartbeats(), self._fail)

    def wake_heartbeats(self) -> None:
        """Wake the heartbeat task."""
        self._heartbeat_event.set()

    # Heartbeats

    async def _run_heartbeats(self) -> None:
        membership, timers = self.membership, self._timers
        while True:
            now = self._now()
            if membership.is_outside:
                await self._heartbeat_event.wait(_IDLE_S)
            elif timers.poll_overdue(now) and not self._polling:
                await self._expire()
            elif timers.is_due(now) or (membership.is_urgent and now >= self._paused_until):
                await self._send()
            else:
                wait_s = timers.wait_s(now, polling=self._polling)
                if membership.is_urgent:
                    wait_s = min(wait_s, max(0.0, self._paused_until - now))
                await self._heartbeat_event.wait(wait_s)

    async def _expire(self) -> None:
        if self.membership.expire():
            LOGGER.warning(
                "group %s: no poll for longer than max.poll.interval.ms, so this consumer leaves; "
                "raise it, or lower max.poll.records",
                self._coordinator.group_id,
            )
            await self._send_leave()
        self._wake_event.set()

    async def _send_leave(self) -> None:
        request = self._request()
        self._forget_sent()
        self.membership.sent()
        try:
            await self._coordinator.ask_on_shared_connection(request, self._response)
        except ClientError as error:
            LOGGER.warning(
                "group %s could not be told that its member leaves: %s", self._coordinator.group_id, error
            )

    async def _send(self) -> None:
        try:
            await self._coordinator.find()
            self._timers.sent(self._now())
            request = self._request()
            self.membership.sent()
            answer = await self._coordinator.ask(request, self._response)
        except ClientError as error:
            self._forget_sent()
            if error.retriable:
                self._pause()
            else:
                self._fail(_with_hint(error))
            return
        self.heartbeats += 1
        if answer.error_code:
            self._refused(
                refused(answer.error_code, answer.error_message, about=f"group {self._coordinator.group_id}")
            )
            return
        self._moves = 0
        now = self._now()
        interval_s = answer.heartbeat_interval_ms / 1000
        if interval_s != self._timers.interval_s:
            self._timers.interval_s = interval_s
            self._timers.sent(now)
        self._timers.answered(now)
        assignment = answer.assignment
        self.membership.handle_response(
            answer.member_epoch,
            None
            if assignment is None
            else {
                each.topic_id: frozenset(each.partitions)
                for each in assignment.topic_partitions
                if each.partitions
            },
        )
        if self.membership.must_reconcile:
            self._wake_event.set()

    def _refused(self, error: Any) -> None:
        code: ErrorCode = error.code
        self._forget_sent()
        if code in MOVED:
            self._coordinator.mark_unknown()
            self._moves += 1
            if self._moves == 1:
                self._timers.send_now(self._now())
            else:
                # The new coordinator cannot answer either. Too few replicas may be in sync.
                self._pause()
        elif code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._pause()
        elif code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            # The member stays in the group, and gets partitions once it is authorized.
            self.failure = error
            self._pause()
            self._wake_event.set()
        elif code in _FENCING:
            self.membership.fenced()
            self._timers.send_now(self._now())
            self._wake_event.set()
        elif code is ErrorCode.GROUP_ID_NOT_FOUND and self.membership.state is EpochMemberState.UNSUBSCRIBED:
            pass
        else:
            self._fail(_with_hint(error))

    def _pause(self) -> None:
        now = self._now()
        self._timers.failed(now)
        self._paused_until = now + self._timers.wait_s(now, polling=True)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self.membership.failed()
        self._wake_event.set()

    # Topic names

    def resolve(self) -> tuple[LocalAssignment, list[TopicPartition]]:
        """Return the part of the target assignment with known topic names. Starts a look-up of the others."""
        target = self.membership.target
        known: dict[bytes, frozenset[int]] = {}
        partitions: list[TopicPartition] = []
        for topic_id, numbers in target.partitions.items():
            name = self._cluster.name_of(topic_id) or self._names.get(topic_id)
            if name is not None:
                self._names[topic_id] = name
                known[topic_id] = numbers
                partitions += [TopicPartition(name, number) for number in numbers]
        missing = target.partitions.keys() - known.keys()
        if missing and self._resolving is None:
            self._resolving = start(self._look_up(sorted(missing)), self._fail)
        return LocalAssignment(target.number, known), sorted(partitions)

    async def _look_up(self, ids: list[bytes]) -> None:
        kind = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(topics=[kind(topic_id=each, name=None) for each in ids])
        try:
            answer = await self._cluster.ask_fastest(request, MetadataResponse)
            names = [each.name for each in answer.topics if each.name and not each.error_code]
            if names:
                await self._cluster.refresh(names)
            else:
                await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)
        except ClientError:
            await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)
        finally:
            self._resolving = None
            self._wake_event.set()

    # Closing

    async def close(self) -> None:
        """Stop all tasks."""
        tasks = [each for each in (self._heartbeat_task, self._resolving) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _with_hint(error: ClientError) -> ClientError:
    code = getattr(error, "code", None)
    if isinstance(error, Unsupported) or code is ErrorCode.UNSUPPORTED_VERSION:
        error.hint = (
            error.hint
            or "the cluster does not serve this kind of group; for a Consumer, set group.protocol=classic"
        )
    elif code is ErrorCode.INVALID_REGULAR_EXPRESSION:
        error.hint = error.hint or "the pattern is matched by the broker, in RE2's syntax"
    return error
