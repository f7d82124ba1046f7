"""Keeps a membership by epochs alive: sends its heartbeats and takes their answers.

What the heartbeats of consumer groups and of share groups have in common; who they are sent for is below it.
"""

import asyncio
import base64
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.background import start
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.coordinator import MOVED, Coordinator
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.machine import Membership, MemberState, Share
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, Unsupported, refused
from ottla.client.links import Links
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
        coordinator: Coordinator,
        subscription: Subscription,
        bell: Bell,
        links: Links,
        entropy: Entropy,
        *,
        static: bool = False,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._bell = bell
        name = base64.urlsafe_b64encode(entropy.uuid()).rstrip(b"=").decode()
        self.membership = Membership(name, static=static)
        self._heart = Heartbeat(0.0, _NEVER_S, settings["max.poll.interval.ms"] / 1000, links.retry_backoff())
        self._pulse = Bell()
        self._beating: asyncio.Task[None] | None = None
        self._resolving: asyncio.Task[None] | None = None
        self._names: dict[bytes, str] = {}
        self._polling = False
        self._paused_until = 0.0
        self._moves = 0  # of the coordinator, in a row, without an answer between
        self.failure: Exception | None = None
        self.heartbeats = 0

    # What subclasses know

    @abstractmethod
    def _request(self) -> Message:
        """Return the next heartbeat."""

    @abstractmethod
    def _forget_sent(self) -> None:
        """Have everything said again with the next heartbeat."""

    @property
    @abstractmethod
    def _response(self) -> type[Any]:
        """What it is answered with."""

    # The poll's side

    def enter(self, now: float) -> None:
        """A poll begins: the application is alive."""
        self._polling = True
        self._heart.polled(now)

    def exit(self, now: float) -> None:
        """A poll ends: from now on the application's patience is measured."""
        self._polling = False
        self._heart.polled(now)

    def raise_failure(self) -> None:
        """Raise what went wrong for good since the last time; what nothing can follow, each time."""
        failure = self.failure
        if failure is not None:
            if self.membership.state is not MemberState.FATAL:
                self.failure = None
            raise failure

    def _join(self) -> None:
        self.membership.join()
        if self._beating is None:
            self._heart.begin(self._now())
            self._beating = start(self._beat(), self._fail)

    def hurry(self) -> None:
        """Have the heartbeats look again at what is to be said."""
        self._pulse.ring()

    # Heartbeats

    async def _beat(self) -> None:
        membership, heart = self.membership, self._heart
        while True:
            now = self._now()
            if membership.is_outside:
                await self._pulse.heard(_IDLE_S)
            elif heart.poll_overdue(now) and not self._polling:
                await self._expire()
            elif heart.is_due(now) or (membership.is_urgent and now >= self._paused_until):
                await self._send()
            else:
                wait_s = heart.wait_s(now, polling=self._polling)
                if membership.is_urgent:
                    wait_s = min(wait_s, max(0.0, self._paused_until - now))
                await self._pulse.heard(wait_s)

    async def _expire(self) -> None:
        if self.membership.expire():
            LOGGER.warning(
                "group %s: no poll for longer than max.poll.interval.ms, so this consumer leaves; "
                "raise it, or lower max.poll.records",
                self._coordinator.group_id,
            )
            await self._say_goodbye()
        self._bell.ring()

    async def _say_goodbye(self) -> None:
        request = self._request()
        self._forget_sent()
        self.membership.sent()
        try:
            await self._coordinator.ask_aside(request, self._response)
        except ClientError as error:
            LOGGER.warning(
                "group %s could not be told that its member leaves: %s", self._coordinator.group_id, error
            )

    async def _send(self) -> None:
        try:
            await self._coordinator.find()
            self._heart.sent(self._now())
            request = self._request()
            self.membership.sent()
            answer = await self._coordinator.ask(request, self._response)
        except ClientError as error:
            self._forget_sent()
            if error.retriable:
                self._pause()
            else:
                self._fail(_explained(error))
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
        if interval_s != self._heart.interval_s:
            self._heart.interval_s = interval_s
            self._heart.sent(now)
        self._heart.answered(now)
        assignment = answer.assignment
        self.membership.heard(
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
            self._bell.ring()

    def _refused(self, error: Any) -> None:
        code: ErrorCode = error.code
        self._forget_sent()
        if code in MOVED:
            self._coordinator.lose()
            self._moves += 1
            if self._moves == 1:
                self._heart.hurry(self._now())
            else:
                # It is the one that was found anew, and cannot answer: too few replicas may be in sync for it.
                self._pause()
        elif code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._pause()
        elif code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            # The member stays, and gets what it asked for once it may have it.
            self.failure = error
            self._pause()
            self._bell.ring()
        elif code in _FENCING:
            self.membership.fenced()
            self._heart.hurry(self._now())
            self._bell.ring()
        elif code is ErrorCode.GROUP_ID_NOT_FOUND and self.membership.state is MemberState.UNSUBSCRIBED:
            pass
        else:
            self._fail(_explained(error))

    def _pause(self) -> None:
        now = self._now()
        self._heart.failed(now)
        self._paused_until = now + self._heart.wait_s(now, polling=True)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self.membership.failed()
        self._bell.ring()

    # Topics by name

    def resolve(self) -> tuple[Share, list[TopicPartition]]:
        """Return what of the target is of known topics, with their names; the other names are asked for."""
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
        return Share(target.number, known), sorted(partitions)

    async def _look_up(self, ids: list[bytes]) -> None:
        kind = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(topics=[kind(topic_id=each, name=None) for each in ids])
        try:
            answer = await self._cluster.ask_whoever_answers(request, MetadataResponse)
            names = [each.name for each in answer.topics if each.name and not each.error_code]
            if names:
                await self._cluster.refresh(names)
            else:
                await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)
        except ClientError:
            await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)
        finally:
            self._resolving = None
            self._bell.ring()

    # The end

    async def close(self) -> None:
        """Leave no task behind."""
        tasks = [each for each in (self._beating, self._resolving) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _explained(error: ClientError) -> ClientError:
    code = getattr(error, "code", None)
    if isinstance(error, Unsupported) or code is ErrorCode.UNSUPPORTED_VERSION:
        error.hint = (
            error.hint
            or "the cluster does not serve this kind of group; for a Consumer, set group.protocol=classic"
        )
    elif code is ErrorCode.INVALID_REGULAR_EXPRESSION:
        error.hint = error.hint or "the pattern is matched by the broker, in RE2's syntax"
    return error
