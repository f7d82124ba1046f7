"""Where a consumer reads: positions, seeks, look-ups and pauses; the part of `Consumer` that is not reading on."""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ottla.client.consumer.finder import OffsetAndTimestamp
from ottla.client.consumer.parts import Parts
from ottla.client.consumer.reading import Reading
from ottla.client.consumer.reset import EARLIEST, EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, Reset
from ottla.client.errors import Closed, TimedOut, WrongState
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition

_LONG_S = 3_600.0
NOTHING: Iterator[Record] = iter(())


class Whereabouts:
    """The positions of a consumer, as its application sees them."""

    def __init__(self, settings: Mapping[str, Any], parts: Parts) -> None:
        self._parts = parts
        self._subscription = parts.subscription
        self._timeout_ms: int = settings["default.api.timeout.ms"]
        self._committed_only: bool = settings["isolation.level"] == "read_committed"
        # What iteration has taken from a poll, and not come to yet.
        self._pending = NOTHING
        self._is_open = False
        self._closing: asyncio.Task[None] | None = None
        self._ended = False

    def _check_open(self, *, until_closing: bool = False) -> None:
        """Raise unless the consumer is open; one that closes is, for its listener, but it begins nothing new."""
        if self._ended or (until_closing and self._closing is not None):
            raise Closed("the consumer is closed", hint="make another")
        if not self._is_open:
            raise WrongState("the consumer is not open", hint="use `async with`, or call open() first")

    def _drop_pending(self, unwanted: Callable[[Record], bool]) -> None:
        rest = list(copy.copy(self._pending))
        if rest:
            self._pending = iter([record for record in rest if not unwanted(record)])

    # Positions

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata, leader_epoch: int | None = None
    ) -> None:
        """Read on from an offset; WrongState if the partition is not assigned, or the offset is negative."""
        self._check_open()
        partition = TopicPartition(*partition)
        target = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        epoch = target.leader_epoch if leader_epoch is None else leader_epoch
        if target.offset < 0:
            raise WrongState(f"{partition} cannot be read from offset {target.offset}")
        reading = self._subscription.reading(partition)
        reading.seek(self._parts.positions.position(partition, target.offset, epoch))
        self._jumped([partition])

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on from the first offset there is, in these partitions or in all."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on from the end, as it is when this is looked up, in these partitions or in all."""
        self._reset(partitions, LATEST)

    def _reset(self, partitions: Iterable[TopicPartition], to: Reset) -> None:
        self._check_open()
        chosen = [TopicPartition(*each) for each in partitions] or list(self._subscription.readings)
        for reading in [self._subscription.reading(each) for each in chosen]:
            reading.reset(to)
        self._jumped(chosen)

    def _jumped(self, partitions: Collection[TopicPartition]) -> None:
        self._drop_pending(lambda record: (record.topic, record.partition) in partitions)
        self._parts.positions.settle()
        self._parts.fetcher.send()
        self._parts.bell.ring()

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record to be handed out, finding it out if need be. TimedOut, NoOffset."""
        self._check_open()
        partition = TopicPartition(*partition)
        for record in copy.copy(self._pending):
            if record.topic_partition == partition:
                return record.offset
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._now() + limit_ms / 1000
        while True:
            position = self._subscription.reading(partition).valid_position
            if position is not None:
                return position.offset
            self._parts.positions.raise_error()
            self._parts.positions.settle()
            if self._now() >= deadline:
                raise TimedOut(f"the position in {partition} was not found out within {limit_ms / 1000:g} s")
            await self._parts.bell.heard(min(deadline - self._now(), _LONG_S))

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record from a time on, for each partition, None where all are older. TimedOut, Refused."""
        for partition, moment in times_ms.items():
            if moment < 0:
                raise WrongState(f"{moment} for {TopicPartition(*partition)} is no time")
        found = await self._offsets({TopicPartition(*each): ms for each, ms in times_ms.items()}, timeout_ms)
        return {TopicPartition(*each): found.get(TopicPartition(*each)) for each in times_ms}

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition has. TimedOut, Refused."""
        moments = {TopicPartition(*each): EARLIEST_TIMESTAMP for each in partitions}
        found = await self._offsets(moments, timeout_ms)
        return {partition: each.offset for partition, each in found.items()}

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset behind the last record that may be read in each partition. TimedOut, Refused."""
        moments = {TopicPartition(*each): LATEST_TIMESTAMP for each in partitions}
        found = await self._offsets(moments, timeout_ms)
        return {partition: each.offset for partition, each in found.items()}

    async def _offsets(
        self, moments: Mapping[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        self._check_open()
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        return await self._parts.finder.offsets(moments, limit_ms)

    def lag(self, partition: TopicPartition) -> int | None:
        """Return how many offsets lie ahead in a partition, as of the last fetch; None before the first."""
        return self._subscription.reading(TopicPartition(*partition)).lag(committed_only=self._committed_only)

    # Pauses

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing more of these partitions until they are resumed; they stay assigned."""
        for reading in self._readings(partitions):
            reading.paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with partitions that were paused."""
        for reading in self._readings(partitions):
            reading.paused = False
        self._parts.fetcher.send()
        self._parts.bell.ring()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(each.partition for each in self._subscription.readings.values() if each.paused)

    def _readings(self, partitions: Iterable[TopicPartition]) -> list[Reading]:
        self._check_open()
        return [self._subscription.reading(TopicPartition(*each)) for each in partitions]

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
