"""Resolves the positions of assigned partitions: from committed offsets, by resets, and by validation with new leaders.

One task does this, and only while a position is missing. It continues when the poll that started it is cancelled. The
next poll raises its errors that are not retriable.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partition import (
    NO_EPOCH,
    AssignedPartition,
    FetchPosition,
    FetchState,
    Truncation,
)
from ottla.client.consumer.background import start
from ottla.client.consumer.offset_lookup import OffsetLookup
from ottla.client.consumer.offset_reset import LATEST_TIMESTAMP, NONE, parse_reset
from ottla.client.consumer.subscription import Subscription
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, NoOffset, Unsupported
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.world.clock import Clock


class CommittedOffsets(Protocol):
    """Returns committed offsets."""

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None where there is none."""
        ...


class PositionResolver:
    """Resolves the positions of all assigned partitions."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        subscription: Subscription,
        offset_lookup: OffsetLookup,
        committed: CommittedOffsets | None,
        wake_event: WakeEvent,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._offset_lookup = offset_lookup
        self._committed = committed
        self._wake_event = wake_event
        self._clock = clock
        self._reset_to = parse_reset(settings["auto.offset.reset"])
        self._timeout_ms: int = settings["request.timeout.ms"]
        self._backoff_s: float = settings["retry.backoff.ms"] / 1000
        self._task: asyncio.Task[None] | None = None
        self._errors: list[Exception] = []
        self._closed = False

    @property
    def are_known(self) -> bool:
        """Whether all positions are known and valid."""
        topics = self._cluster.topics
        return all(
            assigned.fetch_state is FetchState.FETCHING and partition.topic in topics
            for partition, assigned in self._subscription.assignment.items()
        )

    def raise_error(self) -> None:
        """Raise the next error that is not retriable."""
        if self._errors:
            raise self._errors.pop(0)

    def update(self) -> None:
        """Start the task if a position is missing. The wake event is set after every change."""
        if self._task is None and not self._closed and not self.are_known:
            self._task = start(self._update(), self._fail)

    def _fail(self, error: Exception) -> None:
        self._errors.append(error)
        self._wake_event.set()

    async def close(self) -> None:
        """Stop the task."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _update(self) -> None:
        try:
            while not self.are_known and not self._errors:
                try:
                    await self._learn_topics()
                    await self._from_committed()
                    await self._by_reset()
                    await self._by_leader()
                except ClientError as error:
                    if not error.retriable:
                        self._errors.append(error)
                self._wake_event.set()
                if self._errors or not self._has_work():
                    return
                await asyncio.sleep(self._backoff_s)
        finally:
            self._task = None

    def _has_work(self) -> bool:
        """Whether a position can be resolved now. Partitions that are being revoked do not count."""
        topics = self._cluster.topics
        return any(
            _needs_offset(assigned)
            or _needs_reset(assigned)
            or _needs_validation(assigned)
            or partition.topic not in topics
            for partition, assigned in self._subscription.assignment.items()
        )

    async def _learn_topics(self) -> None:
        missing = {each.topic for each in self._subscription.assignment} - self._cluster.topics.keys()
        if missing:
            await self._cluster.refresh(sorted(missing))

    # Three ways to resolve a position

    async def _from_committed(self) -> None:
        waiting = {
            each.partition: each.position_id for each in self._subscription.assigned_where(_needs_offset)
        }
        if not waiting:
            return
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self._committed is not None:
            offsets = await self._committed.committed(waiting, self._timeout_ms)
        without_offset: list[TopicPartition] = []
        for partition, position_id in waiting.items():
            assigned = self._subscription.assignment.get(partition)
            if (
                assigned is None
                or assigned.position_id != position_id
                or assigned.fetch_state is not FetchState.INITIALIZING
            ):
                continue
            offset = offsets.get(partition)
            if offset is not None:
                assigned.seek(self.position(partition, offset.offset, offset.leader_epoch))
            elif self._reset_to is NONE:
                without_offset.append(partition)
            else:
                assigned.reset(self._reset_to)
        if without_offset:
            names = ", ".join(map(str, without_offset))
            raise NoOffset(
                f"no offset is committed for {names}, and auto.offset.reset is none",
                hint="seek to an offset, or set auto.offset.reset to earliest or latest",
            )

    async def _by_reset(self) -> None:
        timestamps: dict[TopicPartition, int] = {}
        position_ids: dict[TopicPartition, int] = {}
        now_ms = self._clock.now_ms()
        for assigned in self._subscription.assigned_where(_needs_reset):
            assert assigned.reset_to is not None
            timestamp = assigned.reset_to.timestamp_at(now_ms)
            if timestamp is None:
                raise NoOffset(f"{assigned.partition} has no position, and auto.offset.reset is none")
            timestamps[assigned.partition], position_ids[assigned.partition] = timestamp, assigned.position_id
        if not timestamps:
            return
        found = await self._offset_lookup.offsets(timestamps, self._timeout_ms)
        late = {each: LATEST_TIMESTAMP for each in timestamps if each not in found}
        if late:
            # There is no record at or after the timestamp yet, so reading begins at the end.
            found |= await self._offset_lookup.offsets(late, self._timeout_ms)
        for partition, offset in found.items():
            assigned_now = self._subscription.assignment.get(partition)
            if assigned_now is not None:
                assigned_now.finish_reset(
                    self.position(partition, offset.offset, NO_EPOCH), position_ids[partition]
                )

    async def _by_leader(self) -> None:
        asked: dict[TopicPartition, FetchPosition] = {}
        for assigned in self._subscription.assigned_where(_needs_validation):
            leader = self._cluster.leader(*assigned.partition)
            if leader is None:
                self._cluster.request_refresh()
                continue
            assigned.set_leader(leader.node, leader.epoch)
            if assigned.fetch_state is FetchState.VALIDATING and assigned.position is not None:
                asked[assigned.partition] = assigned.position
        if not asked:
            return
        try:
            ends = await self._offset_lookup.epoch_ends(asked)
        except Unsupported:
            # The broker is too old for leader epochs: the position cannot be validated.
            for partition in asked:
                self._subscription.assigned(partition).mark_valid()
            return
        lost: list[Truncation] = []
        for partition, (end_offset, epoch) in ends.items():
            found = self._subscription.assignment.get(partition)
            if found is not None:
                truncation = found.validated(asked[partition], end_offset, epoch, may_reset=self._reset_to)
                lost += [truncation] if truncation is not None else []
        if len(ends) < len(asked):
            self._cluster.request_refresh()
        if lost:
            raise NoOffset(
                "; ".join(map(_describe, lost)),
                hint="seek to an offset that exists, or set auto.offset.reset to earliest or latest",
            )

    def position(self, partition: TopicPartition, offset: int, epoch: int) -> FetchPosition:
        """Return a position with the current leader, if it is known."""
        # A former leader that is cut off would report an end offset that is too low.
        self._cluster.supersede_leader(*partition, epoch)
        leader = self._cluster.leader(*partition)
        return (
            FetchPosition(offset, epoch)
            if leader is None
            else FetchPosition(offset, epoch, leader.node, leader.epoch)
        )


def _needs_offset(assigned: AssignedPartition) -> bool:
    return assigned.needs_offset


def _needs_reset(assigned: AssignedPartition) -> bool:
    return assigned.fetch_state is FetchState.RESETTING and not assigned.revoking


def _needs_validation(assigned: AssignedPartition) -> bool:
    return assigned.fetch_state is FetchState.VALIDATING and not assigned.revoking


def _describe(lost: Truncation) -> str:
    where = "" if lost.divergent is None else f", which now ends at {lost.divergent.offset}"
    return f"the log of {lost.partition} was truncated below offset {lost.position.offset}{where}"
