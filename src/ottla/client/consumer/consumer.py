"""The consumer: reads records of topics, by itself or as a member of a group.

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        await consumer.subscribe(["greetings"])
        async for record in consumer:
            print(record.value)

Z1  Every call that waits can be cancelled. No record is lost: the next poll returns it.
Z2  After `close` the consumer has no task and no connection.
Z3  A record counts as consumed when `poll` returns it, or when an iteration reaches it. This is what is committed.
"""

import asyncio
import copy
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ottla.client.consumer.commits import CommitCallback, OffsetCommits, Offsets
from ottla.client.consumer.consumer_positions import NOTHING, ConsumerPositions
from ottla.client.consumer.listener import GroupMetadata, RebalanceListener
from ottla.client.consumer.parts import ConsumerParts
from ottla.client.consumer.statistics import statistics_of
from ottla.client.consumer.subscription import SubscriptionType
from ottla.client.deprecation import renamed_durations
from ottla.client.duration import Duration, duration_ms, seconds
from ottla.client.errors import ClientError, Closed, WrongState, refused
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition
from ottla.client.settings import resolve
from ottla.client.system_interfaces import SystemInterfaces

if TYPE_CHECKING:
    import pyarrow as pa

LOGGER = logging.getLogger("ottla.client")
T = TypeVar("T")

_LONG_S = 3_600.0
_YIELD_S = 0.0005


class Consumer(ConsumerPositions):
    """Reads records of topics. Open it with `async with`, or with `open` and `close`. Use it from one task at a time.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.
    """

    _interfaces = SystemInterfaces()  # the system's, unless a subclass has others

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        self._settings = resolve("consumer", bootstrap_servers, settings, keywords)
        super().__init__(self._settings, ConsumerParts.of(self._settings, self._consumed, self._interfaces))
        self._buffer = self._parts.fetcher.buffer
        self._records_max: int = self._settings["max.poll.records"]
        self._polling = False
        self._yield_at = 0.0
        self._checked = -1  # version of the metadata that was last checked for errors

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
        self._parts.cluster.add_listener(self._on_metadata)
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
        parts.wake_event.set()
        try:
            if self._is_open and parts.member is not None and parts.commits is not None:
                if parts.auto_commit is not None and self._subscription.assignment:
                    await parts.auto_commit.commit_before_revocation(timeout_s * 1000)
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
            await parts.position_resolver.close()
            await parts.fetcher.close(politely=self._is_open and deadline > loop.time())
            parts.connections.close()
            await parts.cluster.close()
            parts.interceptors.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _on_metadata(self) -> None:
        self._parts.fetcher.send()
        self._parts.wake_event.set()

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
        cluster, by_pattern = self._parts.cluster, self._subscription.kind is SubscriptionType.PATTERN
        cluster.set_all_topics(by_pattern)
        if not by_pattern:
            cluster.retain(self._subscription.known_topics)
        if by_pattern or any(name not in cluster.topics for name in names):
            await cluster.refresh(names)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group that assigns them. Offsets can still be committed for a group.

        Raises WrongState if the consumer is subscribed to topics.
        """
        self._check_open(until_closing=True)
        if self._parts.auto_commit is not None:
            self._parts.auto_commit.commit_if_due(self._now())
        self._subscription.assign(TopicPartition(*each) for each in partitions)
        self._buffer.purge()
        self._drop_pending(lambda record: record.topic_partition not in self._subscription.assignment)
        self._parts.cluster.retain(self._subscription.known_topics)
        self._parts.position_resolver.update()
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
            self._buffer.purge()
            self._drop_pending(lambda record: True)
            self._parts.cluster.set_all_topics(False)
            self._parts.cluster.retain(())

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this consumer now."""
        return frozenset(self._subscription.assignment)

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
        if self._subscription.kind is SubscriptionType.NONE:
            raise WrongState("there is nothing to read", hint="subscribe to topics, or assign partitions")
        parts = self._parts
        member, auto_commit, fetcher = parts.member, parts.auto_commit, parts.fetcher
        now = self._now()
        deadline = float("inf") if timeout_ms is None else now + timeout_ms / 1000
        self._polling = True
        if member is not None:
            member.poll_started(now)
        try:
            if now >= self._yield_at:
                # Heartbeats and responses must be handled even if records are always ready.
                await asyncio.sleep(0)
                self._yield_at = now + _YIELD_S
            while True:
                if member is not None:
                    await member.maintain(deadline)
                if auto_commit is not None and member is not None and member.may_commit:
                    auto_commit.commit_if_due(self._now())
                parts.position_resolver.update()
                found, moved = take()
                if moved:
                    fetcher.refill()
                    return found
                self._raise_errors()
                fetcher.send()
                now = self._now()
                if now >= deadline:
                    return nothing
                wait_s = min(deadline - now, _LONG_S if auto_commit is None else auto_commit.due_in_s(now))
                await parts.wake_event.wait(wait_s)
                self._check_open(until_closing=True)
        finally:
            self._polling = False
            if member is not None:
                member.poll_ended(self._now())

    def _raise_errors(self) -> None:
        parts = self._parts
        parts.position_resolver.raise_error()
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
        from ottla.client.consumer.arrow_poll import take_record_batch

        limit = self._settings["fetch.max.bytes"] if max_bytes is None else max_bytes
        return await self._poll(
            duration_ms(timeout), lambda: take_record_batch(self._buffer, limit, max_records), None
        )

    def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Record]:
        while True:
            pending = self._pending
            for record in pending:
                yield record
                if pending is not self._pending:
                    break  # the application has called seek or assign meanwhile
            else:
                await self._fill()

    async def _fill(self) -> None:
        """Poll for the next records of an iteration."""
        records = await self._poll(None, lambda: self._take(self._records_max), list[Record]())
        self._pending = iter(records)

    def _take(self, count: int) -> tuple[list[Record], bool]:
        found, moved = self._buffer.take(count)
        interceptors = self._parts.interceptors
        return (interceptors.consume(found) if found and interceptors.on_consume else found), moved

    def _take_next(self, count: int) -> tuple[list[Record], bool]:
        """Return records that an iteration has not reached, if still assigned, or else fetched records."""
        self._drop_pending(lambda record: record.topic_partition not in self._subscription.assignment)
        pending = self._take_pending(count)
        return (pending, True) if pending else self._take(count)

    def _take_pending(self, count: int) -> list[Record]:
        """Return the records that an ended iteration has not reached."""
        if self._pending is NOTHING:
            return []
        rest = list(copy.copy(self._pending))
        self._pending = iter(rest[count:]) if rest[count:] else NOTHING
        return rest[:count]

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit. Records that an iteration has not reached are not included."""
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

    def _commits(self) -> OffsetCommits:
        self._check_open()
        if self._parts.commits is None:
            raise WrongState("offsets are committed in the name of a group", hint="give a group_id")
        return self._parts.commits

    # Group and statistics

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
        self._parts.member.request_rebalance(reason)

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
    """Return the offsets as OffsetAndMetadata."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }
