"""The consumer: reads records of topics, by itself or as a member of a group.

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        await consumer.subscribe(["greetings"])
        async for record in consumer:
            print(record.value)

Z1  Every call that waits can be cancelled, and nothing is lost by it: what a poll has not returned, the next one does.
Z2  After `close` no task and no connection of the consumer is left.
Z3  A record counts as handed out when `poll` returns it, or iteration comes to it; that is what is committed.
"""

import asyncio
import copy
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ottla.client.consumer.commits import CommitCallback, Commits, Offsets
from ottla.client.consumer.listener import GroupMetadata, RebalanceListener
from ottla.client.consumer.parts import Parts
from ottla.client.consumer.statistics import statistics_of
from ottla.client.consumer.subscription import Kind
from ottla.client.consumer.whereabouts import NOTHING, Whereabouts
from ottla.client.deprecation import renamed_durations
from ottla.client.doors import Doors
from ottla.client.duration import Duration, duration_ms, seconds
from ottla.client.errors import ClientError, Closed, WrongState, refused
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition
from ottla.client.settings import resolve

if TYPE_CHECKING:
    import pyarrow as pa

LOGGER = logging.getLogger("ottla.client")
T = TypeVar("T")

_LONG_S = 3_600.0
_YIELD_S = 0.0005


class Consumer(Whereabouts):
    """Reads records of topics. Open it with `async with`, or with `open` and `close`. Use it from one task at a time.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.
    """

    _doors = Doors()  # the system's, unless a subclass has others

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        self._settings = resolve("consumer", bootstrap_servers, settings, keywords)
        super().__init__(self._settings, Parts.of(self._settings, self._consumed, self._doors))
        self._shelf = self._parts.fetcher.shelf
        self._records_max: int = self._settings["max.poll.records"]
        self._polling = False
        self._yield_at = 0.0
        self._checked = -1  # version of the metadata that was looked through for errors

    # Life

    async def open(self) -> Self:
        """Connect to a broker; `async with` does this too.

        Raises NoBroker if no broker answers within default.api.timeout.ms.
        """
        if self._closing is not None:
            raise Closed("the consumer is closed", hint="make another")
        if self._is_open:
            return self
        try:
            await self._parts.cluster.open(self._timeout_ms)
        except BaseException:
            await self._parts.cluster.close()
            raise
        self._is_open = True
        self._parts.cluster.listen(self._heard_news)
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def close(self, *, timeout: Duration = 30.0, leave_group: bool | None = None) -> None:
        """Commit what was returned, if enable.auto.commit is on, leave the group, and disconnect.

        A static member (group.instance.id) stays in its group until session.timeout.ms; `leave_group` overrides this.
        An error of a rebalance listener is raised after everything is closed.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(seconds(timeout), leave_group))
        await asyncio.shield(self._closing)

    async def _close(self, timeout_s: float, leave_group: bool | None) -> None:
        parts, loop = self._parts, asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        parts.bell.ring()
        try:
            if self._is_open and parts.member is not None and parts.commits is not None:
                if parts.auto is not None and self._subscription.readings:
                    await parts.auto.finally_commit(timeout_s * 1000)
                await parts.commits.finish(max(0.0, deadline - loop.time()))
                if self._subscription.is_automatic:
                    await parts.member.leave(
                        "the consumer is being closed",
                        force=leave_group,
                        timeout_s=max(0.1, deadline - loop.time()),
                    )
        finally:
            self._ended = True
            if parts.member is not None and parts.coordinator is not None:
                await parts.member.close()
                await parts.coordinator.close()
            await parts.positions.close()
            await parts.fetcher.close(politely=self._is_open and deadline > loop.time())
            parts.links.close()
            await parts.cluster.close()
            parts.interceptors.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _heard_news(self) -> None:
        self._parts.fetcher.send()
        self._parts.bell.ring()

    # What to read

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: the named ones, or all whose whole name matches a pattern.

        The broker matches a pattern that is a string, in RE2's syntax, if group.protocol is consumer. This client
        matches every other pattern. Without topics and pattern the call unsubscribes. Raises WrongState without a
        group.id, or if partitions were assigned by hand.
        """
        self._check_open(until_closing=True)
        if self._parts.member is None:
            raise WrongState("subscribe needs a group", hint="give a group_id, or assign partitions by hand")
        if isinstance(topics, str):
            raise WrongState("subscribe takes a list of topics", hint=f"write subscribe([{topics!r}])")
        names = list(topics)
        if pattern is not None and names:
            raise WrongState("subscribe takes topics or a pattern, not both")
        if pattern is None and not names:
            await self.unsubscribe()
            return
        if pattern is None:
            self._subscription.subscribe(names, listener)
        elif isinstance(pattern, str) and self._settings["group.protocol"] == "consumer":
            self._subscription.subscribe_remotely(pattern, listener)
        else:
            compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
            self._subscription.subscribe_pattern(compiled, listener)
        self._drop_pending(lambda record: not self._subscription.wants(record.topic))
        with suppress(ClientError):
            await self._learn_topics(names)

    async def _learn_topics(self, names: Iterable[str] = ()) -> None:
        cluster, by_pattern = self._parts.cluster, self._subscription.kind is Kind.PATTERN
        cluster.want_all(by_pattern)
        if not by_pattern:
            cluster.retain(self._subscription.known_topics)
        if by_pattern or any(name not in cluster.topics for name in names):
            await cluster.refresh(names)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group that assigns them. Offsets can still be committed for a group.

        Raises WrongState if the consumer is subscribed to topics.
        """
        self._check_open(until_closing=True)
        if self._parts.auto is not None:
            self._parts.auto.tick(self._now())
        self._subscription.assign(TopicPartition(*each) for each in partitions)
        self._shelf.purge()
        self._drop_pending(lambda record: record.topic_partition not in self._subscription.readings)
        self._parts.cluster.retain(self._subscription.known_topics)
        self._parts.positions.settle()
        self._parts.fetcher.send()

    async def unsubscribe(self) -> None:
        """Stop reading, and leave the group. Raises the errors of the rebalance listener."""
        self._check_open(until_closing=True)
        member = self._parts.member
        try:
            if member is not None and self._subscription.is_automatic:
                await member.leave(
                    "the consumer unsubscribed from all topics", force=None, timeout_s=self._timeout_ms / 1000
                )
        finally:
            self._subscription.unsubscribe()
            self._shelf.purge()
            self._drop_pending(lambda record: True)
            self._parts.cluster.want_all(False)
            self._parts.cluster.retain(())

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this consumer now."""
        return frozenset(self._subscription.readings)

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics. With a pattern that this client matches, the topics that match."""
        return self._subscription.topics if self._subscription.is_automatic else frozenset()

    # Reading

    @renamed_durations("timeout_ms", "max_records", timeout_ms="timeout")
    async def poll(self, *, timeout: Duration | None = 1.0, max_records: int | None = None) -> list[Record]:
        """Return the next records as soon as there are any, or an empty list after the timeout.

        `max_records` is max.poll.records unless given. With a timeout of None it waits until there are records.
        Rebalances happen during this call, and it raises the errors of their listeners. Raises NoOffset, Malformed,
        SerializationFailed, Refused or Fenced; records before the failure are returned first.
        """
        count = self._records_max if max_records is None else max_records
        return await self._poll(duration_ms(timeout), lambda: self._take_next(count), list[Record]())

    async def _poll(self, timeout_ms: float | None, take: Callable[[], tuple[T, bool]], nothing: T) -> T:
        self._check_open(until_closing=True)
        if self._polling:
            raise WrongState("another task is polling this consumer", hint="poll from one task at a time")
        if self._subscription.kind is Kind.NONE:
            raise WrongState("there is nothing to read", hint="subscribe to topics, or assign partitions")
        parts = self._parts
        member, auto, fetcher = parts.member, parts.auto, parts.fetcher
        now = self._now()
        deadline = float("inf") if timeout_ms is None else now + timeout_ms / 1000
        self._polling = True
        if member is not None:
            member.enter(now)
        try:
            if now >= self._yield_at:
                # An application that is always served at once must not keep heartbeats, and answers, from their turns.
                await asyncio.sleep(0)
                self._yield_at = now + _YIELD_S
            while True:
                if member is not None:
                    await member.tend(deadline)
                if auto is not None and member is not None and member.may_commit:
                    auto.tick(self._now())
                parts.positions.settle()
                found, moved = take()
                if moved:
                    fetcher.refill()
                    return found
                self._raise_errors()
                fetcher.send()
                now = self._now()
                if now >= deadline:
                    return nothing
                wait_s = min(deadline - now, _LONG_S if auto is None else auto.due_in_s(now))
                await parts.bell.heard(wait_s)
                self._check_open(until_closing=True)
        finally:
            self._polling = False
            if member is not None:
                member.exit(self._now())

    def _raise_errors(self) -> None:
        parts = self._parts
        parts.positions.raise_error()
        parts.fetcher.raise_error()
        if parts.commits is not None and parts.commits.failure is not None:
            raise parts.commits.failure
        if self._checked != parts.cluster.version:
            self._checked = parts.cluster.version
            for name in self._subscription.topics:
                topic = parts.cluster.topics.get(name)
                if topic is not None and topic.error and not topic.error.retriable:
                    raise refused(topic.error, about=f"topic {name}")

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def poll_arrow(
        self,
        *,
        timeout: Duration | None = 1.0,
        max_records: int | None = None,
        max_bytes: int | None = None,
    ) -> "pa.RecordBatch | None":
        """Return the next records as one Arrow record batch, or None after the timeout.

        No Python object is made for a record, and deserializers and interceptors are not applied. `max_bytes` limits
        the compressed size of the batches that are used; it is fetch.max.bytes unless given. Raises the errors of
        `poll`, and ImportError without pyarrow.
        """
        from ottla.client.consumer.raw import arrow_of

        limit = self._settings["fetch.max.bytes"] if max_bytes is None else max_bytes
        return await self._poll(duration_ms(timeout), lambda: arrow_of(self._shelf, limit, max_records), None)

    def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Record]:
        while True:
            pending = self._pending
            for record in pending:
                yield record
                if pending is not self._pending:
                    break  # somebody has sought elsewhere meanwhile
            else:
                await self._fill()

    async def _fill(self) -> None:
        """Poll for what iteration comes to next."""
        records = await self._poll(None, lambda: self._take(self._records_max), list[Record]())
        self._pending = iter(records)

    def _take(self, count: int) -> tuple[list[Record], bool]:
        found, moved = self._shelf.take(count)
        interceptors = self._parts.interceptors
        return (interceptors.consume(found) if found and interceptors.on_consume else found), moved

    def _take_next(self, count: int) -> tuple[list[Record], bool]:
        """Hand out what an iteration has left over of partitions that are assigned still, else what was fetched."""
        self._drop_pending(lambda record: record.topic_partition not in self._subscription.readings)
        pending = self._take_pending(count)
        return (pending, True) if pending else self._take(count)

    def _take_pending(self, count: int) -> list[Record]:
        """Hand out what an iteration that was left has not come to."""
        if self._pending is NOTHING:
            return []
        rest = list(copy.copy(self._pending))
        self._pending = iter(rest[count:]) if rest[count:] else NOTHING
        return rest[:count]

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What has been handed out, as it would be committed: what iteration has not come to is not."""
        offsets = self._subscription.consumed()
        for record in reversed(list(copy.copy(self._pending))):
            partition = TopicPartition(record.topic, record.partition)
            if partition in offsets:
                offsets[partition] = OffsetAndMetadata(record.offset)
        return offsets

    # Committing

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Commit these offsets, or those of all records that were returned, and wait until they are committed.

        An offset is that of the next record to read. Without a timeout, default.api.timeout.ms is the limit. Raises
        CommitFailed if the group was rebalanced without this consumer, Refused with REBALANCE_IN_PROGRESS during a
        rebalance, Fenced if another consumer has the same group.instance.id, and TimedOut.
        """
        await self._commits().commit(
            self._consumed() if offsets is None else _typed(offsets), self._limit_ms(timeout)
        )

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit these offsets, or those of all records that were returned, without waiting and without retries.

        `callback(offsets, error)` is called with the outcome; the error is None if they were committed.
        """
        self._commits().commit_nowait(self._consumed() if offsets is None else _typed(offsets), callback)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offset that the group has committed for each partition, or None. Raises TimedOut, Refused."""
        return await self._commits().committed(
            [TopicPartition(*each) for each in partitions], self._limit_ms(timeout)
        )

    def _commits(self) -> Commits:
        self._check_open()
        if self._parts.commits is None:
            raise WrongState("offsets are committed in the name of a group", hint="give a group_id")
        return self._parts.commits

    # The group, and what there is to tell

    @property
    def group_metadata(self) -> GroupMetadata:
        """The membership of this consumer, for `send_offsets_to_transaction`. Raises WrongState without a group."""
        if self._parts.member is None:
            raise WrongState("there is no group", hint="give a group_id")
        return self._parts.member.metadata

    def enforce_rebalance(self, reason: str = "") -> None:
        """Start a rebalance of the group with the next poll. It has no effect if group.protocol is consumer."""
        self._check_open(until_closing=True)
        if self._parts.member is None:
            raise WrongState("there is no group to rebalance", hint="give a group_id")
        self._parts.member.enforce(reason)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def partitions_for(self, topic: str, *, timeout: Duration | None = None) -> list[int]:
        """Return the partitions of a topic. Raises TimedOut, and Refused if the topic does not exist."""
        self._check_open()
        found = await self._parts.cluster.topic(
            topic, duration_ms(timeout), auto_create=self._settings["allow.auto.create.topics"]
        )
        return sorted(found.leaders)

    def statistics(self) -> dict[str, Any]:
        """Return counts of records and fetches, the position and lag of each partition, and the state of the group."""
        return statistics_of(self._parts, committed_only=self._committed_only)


def _typed(offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Offsets as they are committed; a bare number is an offset without a word about it."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }
