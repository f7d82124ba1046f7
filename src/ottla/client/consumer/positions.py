"""Finds out where to read on: from committed offsets, by resets, and by checking positions with new leaders.

One task does it, and only while there is something to find out. It goes on when the poll that started it was
cancelled; what goes wrong for good is raised by the next poll.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ottla.client.cluster import Cluster
from ottla.client.consumer.background import start
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.finder import Finder
from ottla.client.consumer.reading import NO_EPOCH, Position, Reading, Stage, Truncation
from ottla.client.consumer.reset import LATEST_TIMESTAMP, NONE, parse_reset
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, NoOffset, Unsupported
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.world.clock import Clock


class Committed(Protocol):
    """Where committed offsets are to be had."""

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None where there is none."""
        ...


class Positions:
    """Keeps every assigned partition's position settled."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        subscription: Subscription,
        finder: Finder,
        committed: Committed | None,
        bell: Bell,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._finder = finder
        self._committed = committed
        self._bell = bell
        self._clock = clock
        self._reset_to = parse_reset(settings["auto.offset.reset"])
        self._timeout_ms: int = settings["request.timeout.ms"]
        self._backoff_s: float = settings["retry.backoff.ms"] / 1000
        self._task: asyncio.Task[None] | None = None
        self._errors: list[Exception] = []
        self._closed = False

    @property
    def are_settled(self) -> bool:
        """Whether nothing is left to find out."""
        topics = self._cluster.topics
        return all(
            reading.stage is Stage.FETCHING and partition.topic in topics
            for partition, reading in self._subscription.readings.items()
        )

    def raise_error(self) -> None:
        """Raise what went wrong for good since the last time."""
        if self._errors:
            raise self._errors.pop(0)

    def settle(self) -> None:
        """Have everything found out that is not known; the bell rings whenever something is."""
        if self._task is None and not self._closed and not self.are_settled:
            self._task = start(self._settle(), self._fail)

    def _fail(self, error: Exception) -> None:
        self._errors.append(error)
        self._bell.ring()

    async def close(self) -> None:
        """Leave no task behind."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _settle(self) -> None:
        try:
            while not self.are_settled and not self._errors:
                try:
                    await self._learn_topics()
                    await self._from_committed()
                    await self._by_reset()
                    await self._by_leader()
                except ClientError as error:
                    if not error.retriable:
                        self._errors.append(error)
                self._bell.ring()
                if self._errors or not self._is_work():
                    return
                await asyncio.sleep(self._backoff_s)
        finally:
            self._task = None

    def _is_work(self) -> bool:
        """Whether something can be found out now: nothing can be of a partition that is about to be revoked."""
        topics = self._cluster.topics
        return any(
            _needs_offset(reading)
            or _needs_reset(reading)
            or _needs_validation(reading)
            or partition.topic not in topics
            for partition, reading in self._subscription.readings.items()
        )

    async def _learn_topics(self) -> None:
        missing = {each.topic for each in self._subscription.readings} - self._cluster.topics.keys()
        if missing:
            await self._cluster.refresh(sorted(missing))

    # The three ways to a position

    async def _from_committed(self) -> None:
        waiting = {each.partition: each.era for each in self._subscription.some(_needs_offset)}
        if not waiting:
            return
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self._committed is not None:
            offsets = await self._committed.committed(waiting, self._timeout_ms)
        homeless: list[TopicPartition] = []
        for partition, era in waiting.items():
            reading = self._subscription.readings.get(partition)
            if reading is None or reading.era != era or reading.stage is not Stage.INITIALIZING:
                continue
            offset = offsets.get(partition)
            if offset is not None:
                reading.seek(self.position(partition, offset.offset, offset.leader_epoch))
            elif self._reset_to is NONE:
                homeless.append(partition)
            else:
                reading.reset(self._reset_to)
        if homeless:
            names = ", ".join(map(str, homeless))
            raise NoOffset(
                f"no offset is committed for {names}, and auto.offset.reset is none",
                hint="seek to an offset, or set auto.offset.reset to earliest or latest",
            )

    async def _by_reset(self) -> None:
        moments: dict[TopicPartition, int] = {}
        eras: dict[TopicPartition, int] = {}
        now_ms = self._clock.now_ms()
        for reading in self._subscription.some(_needs_reset):
            assert reading.reset_to is not None
            moment = reading.reset_to.moment(now_ms)
            if moment is None:
                raise NoOffset(f"{reading.partition} has no position, and auto.offset.reset is none")
            moments[reading.partition], eras[reading.partition] = moment, reading.era
        if not moments:
            return
        found = await self._finder.offsets(moments, self._timeout_ms)
        late = {each: LATEST_TIMESTAMP for each in moments if each not in found}
        if late:
            # Nothing is as young as that yet, so what comes next is.
            found |= await self._finder.offsets(late, self._timeout_ms)
        for partition, offset in found.items():
            reading_now = self._subscription.readings.get(partition)
            if reading_now is not None:
                reading_now.found(self.position(partition, offset.offset, NO_EPOCH), eras[partition])

    async def _by_leader(self) -> None:
        asked: dict[TopicPartition, Position] = {}
        for reading in self._subscription.some(_needs_validation):
            leader = self._cluster.leader(*reading.partition)
            if leader is None:
                self._cluster.stale()
                continue
            reading.lead(leader.node, leader.epoch)
            if reading.stage is Stage.VALIDATING and reading.position is not None:
                asked[reading.partition] = reading.position
        if not asked:
            return
        try:
            ends = await self._finder.epoch_ends(asked)
        except Unsupported:
            # A broker of before epochs were told to clients: there is nothing to check against.
            for partition in asked:
                self._subscription.reading(partition).trust()
            return
        lost: list[Truncation] = []
        for partition, (end_offset, epoch) in ends.items():
            found = self._subscription.readings.get(partition)
            if found is not None:
                truncation = found.validated(asked[partition], end_offset, epoch, may_reset=self._reset_to)
                lost += [truncation] if truncation is not None else []
        if len(ends) < len(asked):
            self._cluster.stale()
        if lost:
            raise NoOffset(
                "; ".join(map(_told, lost)),
                hint="seek to an offset that exists, or set auto.offset.reset to earliest or latest",
            )

    def position(self, partition: TopicPartition, offset: int, epoch: int) -> Position:
        """Return a position with whoever leads the partition, as far as that is known."""
        # A leader that is cut off does not know it, has nothing of what came after it, and would have us go back.
        self._cluster.outdate(*partition, epoch)
        leader = self._cluster.leader(*partition)
        return (
            Position(offset, epoch) if leader is None else Position(offset, epoch, leader.node, leader.epoch)
        )


def _needs_offset(reading: Reading) -> bool:
    return reading.needs_offset


def _needs_reset(reading: Reading) -> bool:
    return reading.stage is Stage.RESETTING and not reading.revoking


def _needs_validation(reading: Reading) -> bool:
    return reading.stage is Stage.VALIDATING and not reading.revoking


def _told(lost: Truncation) -> str:
    where = "" if lost.divergent is None else f", which now ends at {lost.divergent.offset}"
    return f"the log of {lost.partition} was truncated below offset {lost.position.offset}{where}"
