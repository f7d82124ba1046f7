"""Membership by the classic protocol, in which a member works out the assignment for all.

C1  Partitions change hands within a poll, so an application never finds them gone between two polls.
C2  Heartbeats, and the talk of a join, go on by themselves between polls. A poll that ends, or is cancelled, in the
    midst of a rebalance leaves it to the next one.
C3  A member whose application does not poll within max.poll.interval.ms leaves its group, and joins again with the
    next poll; what it owned is lost by then.

    eager          revoke all, join, assign
    cooperative    join, revoke what went to others, join again, assign what was added
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignors.protocol import decode_assignment
from ottla.client.consumer.assignors.table import chosen, is_cooperative
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.commits import Identity
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.group.callbacks import Callbacks
from ottla.client.consumer.group.join import JoinAgain, Joiner
from ottla.client.consumer.group.pulse import SEAT_LOST, Pulse
from ottla.client.consumer.group.seat import Seat, SeatState
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.consumer.subscription import Kind, Subscription
from ottla.client.errors import ClientError, CommitFailed, Malformed, refused
from ottla.client.links import Links
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
        coordinator: Coordinator,
        subscription: Subscription,
        bell: Bell,
        links: Links,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._subscription = subscription
        self._bell = bell
        self._instance: str | None = settings["group.instance.id"]
        assignors = chosen(settings["partition.assignment.strategy"])
        self.cooperative = is_cooperative(assignors)
        self._callbacks = Callbacks(subscription)
        self._backoff = links.retry_backoff()
        self.seat = Seat()
        self.pulse = Pulse(settings, coordinator, self.seat, bell, links)
        self._joiner = Joiner(
            settings,
            cluster,
            coordinator,
            subscription,
            assignors,
            self.pulse.begin,
            cooperative=self.cooperative,
        )
        self._joining: asyncio.Task[bytes] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._seen = -1  # version of the metadata that was last looked at
        self.auto: AutoCommit | None = None
        self.rebalances = 0

    # Who it is

    @property
    def metadata(self) -> GroupMetadata:
        """The member's name and generation."""
        generation = self.seat.generation
        return GroupMetadata(self._coordinator.group_id, generation.id, generation.member_id, self._instance)

    def identity(self) -> Identity:
        """Return who commits; raises when the member is of no generation."""
        if not self._subscription.is_automatic:
            return Identity()
        if self.seat.state is SeatState.STABLE:
            return Identity(self.seat.generation.member_id, self.seat.generation.id, self._instance)
        if self.seat.is_moving:
            raise _rebalancing()
        raise CommitFailed(
            "offsets cannot be committed: this consumer is not, or no longer, a member of its group",
            hint="poll to join; if it was put out, raise max.poll.interval.ms or lower max.poll.records",
        )

    @property
    def may_commit(self) -> bool:
        """Whether a commit stands a chance just now."""
        return not self._subscription.is_automatic or self.seat.state is SeatState.STABLE

    def commit_refused(self, code: ErrorCode, identity: Identity) -> ClientError | None:
        """Take note that a commit was refused; return what to raise, or None for the code itself."""
        generation = self.seat.generation
        unchanged = (generation.member_id, generation.id) == (identity.member_id, identity.generation)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.seat.ask_for("offset commit failed since group is already rebalancing")
            self._bell.ring()
            return _rebalancing()
        if code in SEAT_LOST and identity.member_id:
            if not unchanged and self.seat.state is SeatState.PREPARING:
                return _rebalancing()
            if code is ErrorCode.FENCED_INSTANCE_ID and unchanged:
                return None
            if unchanged:
                self.pulse.lose_seat(code, "OFFSET_COMMIT")
            return CommitFailed(f"offsets were not committed: the group has moved on ({code.name})")
        return None

    # The poll's side

    def enter(self, now: float) -> None:
        """A poll begins: the application is alive."""
        self.pulse.polled(now, polling=True)

    def exit(self, now: float) -> None:
        """A poll ends: from now on the application's patience is measured."""
        self.pulse.polled(now, polling=False)

    async def tend(self, deadline: float) -> None:
        """Do what the group has to have done, as far as it goes before the deadline; raises what went wrong."""
        self.pulse.raise_failure()
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
            if self.seat.must_prepare and not await self._prepare(deadline):
                return
            self._begin()
            return

    def enforce(self, reason: str) -> None:
        """Have the group rebalanced with the next poll."""
        self.seat.ask_for(reason or "rebalance enforced by user")
        self._bell.ring()

    def _must_join(self) -> bool:
        topics = self._joiner.topics
        if topics is not None and topics != self._subscription.topics:
            self.seat.ask_for("subscription has changed")
        return self.seat.must_join or self._joining is not None

    def _look_at_metadata(self) -> None:
        if self._seen == self._cluster.version:
            return
        self._seen = self._cluster.version
        if self._subscription.kind is Kind.PATTERN:
            internal = not self._settings["exclude.internal.topics"]
            self._subscription.match(
                topic.name
                for topic in self._cluster.topics.values()
                if not topic.error and (internal or not topic.is_internal)
            )
        if self._joiner.shared is not None and self._joiner.shared != self._joiner.what_is_shared():
            self._joiner.shared = None
            self.seat.ask_for("cached metadata has changed")

    # Giving up partitions

    async def _prepare(self, deadline: float) -> bool:
        """Commit and give up what the protocol asks for; whether that was done in time."""
        if self.auto is not None and self._subscription.readings:
            if self._committing is None:
                if not self.cooperative:
                    # Nothing more of them is handed out, or it would be read again by whoever is next.
                    for reading in self._subscription.readings.values():
                        reading.revoking = True
                self._committing = asyncio.create_task(
                    self.auto.finally_commit(self._settings["max.poll.interval.ms"])
                )
                self._committing.add_done_callback(lambda _: self._bell.ring())
            await asyncio.wait({self._committing}, timeout=max(0.0, deadline - self._loop_time()))
            if not self._committing.done():
                return False
            self._committing = None
        self.seat.must_prepare = False
        await self._callbacks.run(self._give_up())
        return True

    async def _give_up(self) -> Exception | None:
        subscription = self._subscription
        owned = list(subscription.readings)
        error = None
        if self.seat.is_lost:
            error = await self._callbacks.lost(owned)
            subscription.take(())
        elif not self.cooperative:
            error = await self._callbacks.revoked(owned)
            subscription.take(())
        else:
            gone = [each for each in owned if not subscription.wants(each.topic)]
            if gone:
                error = await self._callbacks.revoked(gone)
                subscription.take([each for each in owned if each not in set(gone)])
        self._joiner.is_leader = False
        self._joiner.shared = None
        subscription.group_topics = frozenset()
        return error

    # Joining

    def _begin(self) -> None:
        self.seat.begin()
        self._joining = asyncio.create_task(self._joiner.join(self.seat))
        self._joining.add_done_callback(self._joined)

    def _joined(self, joining: "asyncio.Task[bytes]") -> None:
        if not joining.cancelled():
            joining.exception()
        self._bell.ring()

    async def _complete(self) -> None:
        assert self._joining is not None
        joining, self._joining = self._joining, None
        try:
            assignment = joining.result()
        except JoinAgain:
            self.seat.ask_for("rebalance failed")
            return
        except ClientError as error:
            self.seat.ask_for(f"rebalance failed due to {type(error).__name__}")
            if self.seat.state is not SeatState.UNJOINED:
                self.seat.state = SeatState.UNJOINED
            if not error.retriable:
                raise
            self._wait(self._backoff.failed())
            return
        self._backoff.succeeded()
        if self.seat.state is not SeatState.STABLE:
            # The heartbeat has heard meanwhile that the seat is lost.
            self.seat.reset("rebalance failed since the seat was lost before it was through")
            return
        self.seat.must_prepare = True
        await self._callbacks.run(self._adopt(assignment))

    def _wait(self, pause_s: float) -> None:
        self._not_before = self._loop_time() + pause_s
        asyncio.get_running_loop().call_later(pause_s, self._bell.ring)

    async def _adopt(self, data: bytes) -> Exception | None:
        """Take over an assignment, and give up what is not in it."""
        subscription, generation = self._subscription, self.seat.generation
        try:
            assignor = self._joiner.assignor(generation.protocol)
            assigned = sorted(decode_assignment(data))
        except Malformed as unreadable:
            # Else it would be told once, and then there would be nothing to read for good.
            self.seat.ask_for("received assignment cannot be read")
            return unreadable
        if not all(subscription.wants(each.topic) for each in assigned):
            self.seat.ask_for("received assignment does not match the current subscription")
            return None
        owned = list(subscription.readings)
        error = None
        if self.cooperative:
            revoked = [each for each in owned if each not in set(assigned)]
            if revoked:
                error = await self._callbacks.revoked(revoked)
                self.seat.ask_for("need to revoke partitions and re-join")
        if subscription.kind is Kind.PATTERN:
            # The leader may know of topics that match and that we have yet to hear of.
            subscription.topics |= {each.topic for each in assigned}
            self._joiner.topics = (self._joiner.topics or frozenset()) | subscription.topics
        assignor.adopt(assigned, generation.id)
        if self.auto is not None:
            self.auto.reset(self._loop_time())
        added = [each for each in assigned if each not in set(owned)]
        subscription.take(assigned)
        for each in added:
            subscription.readings[each].awaiting_callback = True
        failed = await self._callbacks.assigned(added)
        for each in added:
            if each in subscription.readings:
                subscription.readings[each].awaiting_callback = False
        self.rebalances += 1
        return error or failed

    # Leaving

    async def leave(self, reason: str, *, force: bool | None, timeout_s: float) -> None:
        """Give up all partitions and, if it is dynamic or `force` says so, the seat."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._callbacks.finish()
                joining, self._joining = self._joining, None
                if joining is not None:
                    joining.cancel()
                    await asyncio.wait({joining})
                if self._subscription.is_automatic and self._subscription.readings:
                    await self._callbacks.run(self._release(list(self._subscription.readings)))
        except TimeoutError:
            LOGGER.warning("group %s: partitions were not given up in time", self._coordinator.group_id)
        finally:
            await self.pulse.leave(reason, force=force, timeout_s=timeout_s)
            self._joiner.topics = None

    async def _release(self, owned: list[TopicPartition]) -> Exception | None:
        if self.seat.is_lost or self.seat.is_moving:
            error = await self._callbacks.lost(owned)
        else:
            error = await self._callbacks.revoked(owned)
        self._subscription.take(())
        return error

    async def close(self) -> None:
        """Leave no task behind."""
        await self.pulse.close()
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
