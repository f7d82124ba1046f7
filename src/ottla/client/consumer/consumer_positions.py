"""The calls of `Consumer` for positions: seek, position, offset look-ups and pauses."""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ottla.client.consumer.assigned_partition import AssignedPartition
from ottla.client.consumer.offset_lookup import OffsetAndTimestamp
from ottla.client.consumer.offset_reset import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    AutoOffsetReset,
)
from ottla.client.consumer.parts import ConsumerParts
from ottla.client.deprecation import renamed_durations, renamed_parameter
from ottla.client.duration import Duration, Time, seconds, time_ms
from ottla.client.errors import Closed, TimedOut, WrongState
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition

_LONG_S = 3_600.0
NOTHING: Iterator[Record] = iter(())


class ConsumerPositions:
    """The base class of `Consumer` with the calls for positions."""

    def __init__(self, settings: Mapping[str, Any], parts: ConsumerParts) -> None:
        self._parts = parts
        self._subscription = parts.subscription
        self._timeout_ms: int = settings["default.api.timeout.ms"]
        self._committed_only: bool = settings["isolation.level"] == "read_committed"
        # Records of a poll that an iteration has not reached yet.
        self._pending = NOTHING
        self._is_open = False
        self._closing: asyncio.Task[None] | None = None
        self._ended = False

    def _check_open(self, *, until_closing: bool = False) -> None:
        """Raise if the consumer is not open. While it closes, its rebalance listener can still use it."""
        if self._ended or (until_closing and self._closing is not None):
            raise Closed("the consumer is closed", hint="make another")
        if not self._is_open:
            raise WrongState("the consumer is not open", hint="use `async with`, or call open() first")

    def _drop_pending(self, unwanted: Callable[[Record], bool]) -> None:
        rest = list(copy.copy(self._pending))
        if rest:
            self._pending = iter([record for record in rest if not unwanted(record)])

    def _limit_ms(self, timeout: Duration | None) -> float:
        """Return a timeout in milliseconds, default.api.timeout.ms when there is none."""
        return self._timeout_ms if timeout is None else seconds(timeout) * 1000

    # Positions

    def seek(
        self,
        partition: TopicPartition | tuple[str, int],
        offset: int | OffsetAndMetadata,
        leader_epoch: int | None = None,
    ) -> None:
        """Continue reading a partition at an offset. Raises WrongState if it is not assigned to this consumer."""
        self._check_open()
        partition = TopicPartition(*partition)
        target = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        epoch = target.leader_epoch if leader_epoch is None else leader_epoch
        if target.offset < 0:
            raise WrongState(f"{partition} cannot be read from offset {target.offset}")
        assigned = self._subscription.assigned(partition)
        assigned.seek(self._parts.position_resolver.position(partition, target.offset, epoch))
        self._jumped([partition])

    def seek_to_beginning(self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()) -> None:
        """Continue reading at the first record of these partitions, or of all assigned ones."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()) -> None:
        """Continue reading at the end of these partitions, or of all assigned ones. The end is looked up later."""
        self._reset(partitions, LATEST)

    def _reset(self, partitions: Iterable[TopicPartition | tuple[str, int]], to: AutoOffsetReset) -> None:
        self._check_open()
        chosen = [TopicPartition(*each) for each in partitions] or list(self._subscription.assignment)
        for assigned in [self._subscription.assigned(each) for each in chosen]:
            assigned.reset(to)
        self._jumped(chosen)

    def _jumped(self, partitions: Collection[TopicPartition]) -> None:
        self._drop_pending(lambda record: (record.topic, record.partition) in partitions)
        self._parts.position_resolver.update()
        self._parts.fetcher.send()
        self._parts.wake_event.set()

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def position(
        self, partition: TopicPartition | tuple[str, int], *, timeout: Duration | None = None
    ) -> int:
        """Return the offset of the next record to be returned. Raises TimedOut, NoOffset."""
        self._check_open()
        partition = TopicPartition(*partition)
        for record in copy.copy(self._pending):
            if record.topic_partition == partition:
                return record.offset
        limit_ms = self._limit_ms(timeout)
        deadline = self._now() + limit_ms / 1000
        while True:
            position = self._subscription.assigned(partition).valid_position
            if position is not None:
                return position.offset
            self._parts.position_resolver.raise_error()
            self._parts.position_resolver.update()
            if self._now() >= deadline:
                raise TimedOut(f"the position in {partition} was not found out within {limit_ms / 1000:g} s")
            await self._parts.wake_event.wait(min(deadline - self._now(), _LONG_S))

    @renamed_parameter("times_ms", "times")
    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def offsets_for_times(
        self, times: Mapping[TopicPartition, Time], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition that is not older than a time, or None if all are older.

        A time is in milliseconds since 1970, or a datetime. Raises TimedOut, Refused.
        """
        timestamps = {TopicPartition(*partition): time_ms(time) for partition, time in times.items()}
        for partition, timestamp in timestamps.items():
            if timestamp < 0:
                raise WrongState(f"{timestamp} for {partition} is not a time")
        found = await self._offsets(timestamps, timeout)
        return {partition: found.get(partition) for partition in timestamps}

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition. Raises TimedOut, Refused."""
        timestamps = {TopicPartition(*each): EARLIEST_TIMESTAMP for each in partitions}
        found = await self._offsets(timestamps, timeout)
        return {partition: each.offset for partition, each in found.items()}

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition that can be read. Raises TimedOut, Refused.

        If isolation.level is read_committed, this is the offset of the first open transaction.
        """
        timestamps = {TopicPartition(*each): LATEST_TIMESTAMP for each in partitions}
        found = await self._offsets(timestamps, timeout)
        return {partition: each.offset for partition, each in found.items()}

    async def _offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: Duration | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        self._check_open()
        return await self._parts.offset_lookup.offsets(timestamps, self._limit_ms(timeout))

    def lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Return the number of offsets not read yet in a partition, as of the last fetch; None before the first."""
        return self._subscription.assigned(TopicPartition(*partition)).lag(
            committed_only=self._committed_only
        )

    # Pauses

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Return no records of these partitions until they are resumed. They stay assigned."""
        for assigned in self._assigned_partitions(partitions):
            assigned.paused = True

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Continue with partitions that were paused."""
        for assigned in self._assigned_partitions(partitions):
            assigned.paused = False
        self._parts.fetcher.send()
        self._parts.wake_event.set()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(each.partition for each in self._subscription.assignment.values() if each.paused)

    def _assigned_partitions(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> list[AssignedPartition]:
        self._check_open()
        return [self._subscription.assigned(TopicPartition(*each)) for each in partitions]

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
