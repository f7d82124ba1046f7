"""The share consumer: many consumers read the same partitions, and each record is delivered to one of them.

    async with ShareConsumer("localhost:9092", group_id="workers") as consumer:
        await consumer.subscribe(["jobs"])
        while True:
            for record in await consumer.poll():
                work(record)

Z1  Every call that waits can be cancelled. No record is lost: the next poll returns what was acquired.
Z2  After `close` the consumer has no task and no connection. Others get the records that were not acknowledged.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.share.acknowledgement import AcknowledgeType
from ottla.client.consumer.share.in_flight_records import InFlightRecords
from ottla.client.consumer.share.member import ShareMember
from ottla.client.consumer.share.share_fetcher import (
    AcknowledgementCallback,
    AcknowledgementRequest,
    ShareFetcher,
)
from ottla.client.consumer.subscription import Subscription, SubscriptionType
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.deprecation import deprecated, renamed_durations
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, Closed, WrongState, refused
from ottla.client.record import Record, TopicPartition
from ottla.client.settings import resolve
from ottla.client.system_interfaces import SystemInterfaces
from ottla.world.entropy import RealEntropy

__all__ = ["AcknowledgeType", "ShareConsumer"]

_LONG_S = 3_600.0


class ShareConsumer:
    """Reads records as a member of a share group. Open it with `async with`, or with `open` and `close`.

    Each record is delivered to one member, which acknowledges it. Use the consumer from one task at a time.

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
        self._settings = resolve("share", bootstrap_servers, settings, keywords)
        network, entropy = self._interfaces.network, self._interfaces.entropy or RealEntropy()
        self._cluster = Cluster(self._settings, ClientConnections(self._settings, network, entropy))
        self._connections = ClientConnections(self._settings, network, entropy)
        group_connections = ClientConnections(self._settings, network, entropy)
        self._wake_event, self._subscription = WakeEvent(), Subscription()
        self._coordinator = GroupCoordinator(self._settings, self._cluster, group_connections)
        self._member = ShareMember(
            self._settings,
            self._cluster,
            self._coordinator,
            self._subscription,
            self._wake_event,
            group_connections,
            entropy,
        )
        self._in_flight = InFlightRecords()
        self._fetcher = ShareFetcher(
            self._settings,
            self._cluster,
            self._connections,
            self._subscription,
            self._in_flight,
            self._wake_event,
            self._member.membership.member_id,
        )
        self._explicit: bool = self._settings["share.acknowledgement.mode"] == "explicit"
        self._records_max: int = self._settings["max.poll.records"]
        self._timeout_ms: int = self._settings["default.api.timeout.ms"]
        self._records = 0
        self._polling = False
        self._checked = -1
        self._is_open = False
        self._closing: asyncio.Task[None] | None = None

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
            await self._cluster.open(self._timeout_ms)
        except BaseException:
            await self._cluster.close()
            raise
        self._is_open = True
        self._cluster.add_listener(self._wake_event.set)
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def close(self, *, timeout: Duration = 30.0) -> None:
        """Send acknowledgements, release all other records, leave the group, and disconnect."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(seconds(timeout)))
        await asyncio.shield(self._closing)

    async def _close(self, timeout_s: float) -> None:
        self._wake_event.set()
        try:
            if self._is_open:
                self._fetcher.set_fetching(False)
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        pending_acknowledgements = self._fetcher.send_acknowledgements(
                            self._in_flight.take_acks(), timeout_s * 1000, closing=True
                        )
                        await _all_done(pending_acknowledgements)
                await self._member.leave(timeout_s)
        finally:
            await self._member.close()
            await self._fetcher.close()
            await self._coordinator.close()
            self._connections.close()
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise Closed("the consumer is closed", hint="make another")
        if not self._is_open:
            raise WrongState("the consumer is not open", hint="use `async with`, or call open() first")

    # What to read

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Read topics as a member of the share group. Without topics the call unsubscribes."""
        self._check_open()
        if isinstance(topics, str):
            raise WrongState("subscribe takes a list of topics", hint=f"write subscribe([{topics!r}])")
        names = list(topics)
        if not names:
            await self.unsubscribe()
            return
        self._subscription.subscribe(names, None)
        self._cluster.retain(self._subscription.known_topics)
        with suppress(ClientError):
            if any(name not in self._cluster.topics for name in names):
                await self._cluster.refresh(names)

    async def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        self._check_open()
        await self._member.leave(self._timeout_ms / 1000)
        self._subscription.unsubscribe()
        self._cluster.retain(())

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        return self._subscription.topics

    # Reading

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def poll(self, *, timeout: Duration | None = 1.0) -> list[Record]:
        """Return records that were acquired for this consumer, up to max.poll.records; none after the timeout.

        If share.acknowledgement.mode is implicit, this call accepts the records of the poll before. If it is explicit
        and one of them was not acknowledged, this call raises WrongState. Raises SerializationFailed for a record that
        it has released, Malformed for a batch that it has rejected, and Refused; records before are returned first.
        """
        self._check_open()
        if self._polling:
            raise WrongState("another task is polling this consumer", hint="poll from one task at a time")
        if self._subscription.kind is SubscriptionType.NONE:
            raise WrongState("there is nothing to read", hint="subscribe to topics")
        self._finish_previous_poll()
        loop = asyncio.get_running_loop()
        deadline = float("inf") if timeout is None else loop.time() + seconds(timeout)
        self._polling = True
        self._member.poll_started(loop.time())
        try:
            # Heartbeats and responses must be handled even if records are always ready.
            await asyncio.sleep(0)
            while True:
                await self._member.maintain()
                found = self._in_flight.take_renewed() or self._take_acquired()
                if found:
                    # No fetch is sent now, so acknowledgements need their own request.
                    self._fetcher.send_acknowledgements({}, self._timeout_ms)
                    self._records += len(found)
                    return found
                self._raise_errors()
                if self._in_flight.renew:
                    # Renewed records come first, so no fetch is sent now.
                    self._fetcher.send_acknowledgements({}, self._timeout_ms)
                else:
                    self._fetcher.set_fetching(True)
                now = loop.time()
                if now >= deadline:
                    return []
                await self._wake_event.wait(min(deadline - now, _LONG_S))
                self._check_open()
        finally:
            self._polling = False
            self._fetcher.set_fetching(False)
            self._member.poll_ended(loop.time())

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        while True:
            for record in await self.poll(timeout=None):
                yield record

    def _finish_previous_poll(self) -> None:
        """Acknowledge the records of the previous poll in implicit mode, or check that the application has."""
        if not self._explicit:
            self._in_flight.accept_all()
        elif self._in_flight.is_open:
            raise WrongState(
                "not all records of the poll before were acknowledged",
                hint="with share.acknowledgement.mode=explicit, acknowledge each before the next poll",
            )
        self._fetcher.attach(self._in_flight.take_acks())

    def _take_acquired(self) -> list[Record]:
        found: list[Record] = []
        acquired_records = self._fetcher.acquired_records
        while acquired_records and len(found) < self._records_max:
            partition, node, acquired = acquired_records[0]
            if acquired.fault is not None and found:
                break
            acquired_records.popleft()
            self._in_flight.add(partition, node, acquired.records, acquired.acks)
            if acquired.fault is not None:
                raise acquired.fault
            found = found + acquired.records if found else acquired.records
        if not found:
            # There are only gaps, which are acknowledged with the next fetch.
            self._fetcher.attach(self._in_flight.take_acks())
        return found

    def _raise_errors(self) -> None:
        if self._fetcher.errors:
            raise self._fetcher.errors.pop(0)
        if self._checked != self._cluster.version:
            self._checked = self._cluster.version
            for name in self._subscription.topics:
                topic = self._cluster.topics.get(name)
                if topic is not None and topic.error and not topic.error.retriable:
                    raise refused(topic.error, about=f"topic {name}")

    # Acknowledging

    def acknowledge(
        self, record: Record | tuple[str, int, int], kind: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge a record of the last poll. The acknowledgement is sent with the next poll or commit.

        Name a record that `poll` raised an error for by topic, partition and offset. Raises WrongState if
        share.acknowledgement.mode is implicit, and for a record that the last poll did not return.
        """
        self._check_open()
        if not self._explicit:
            raise WrongState(
                "records are accepted by the next poll", hint="set share.acknowledgement.mode=explicit"
            )
        self._in_flight.acknowledge(record[0], record[1], record[2], AcknowledgeType(kind))

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def commit(self, *, timeout: Duration | None = None) -> dict[TopicPartition, ClientError | None]:
        """Send the acknowledgements, wait for the answers, and return for each partition an error, or None."""
        self._check_open()
        limit_ms = self._timeout_ms if timeout is None else seconds(timeout) * 1000
        outcomes = await _all_done(self._send_acknowledgements(limit_ms))
        return {
            TopicPartition(partition.topic, partition.partition): error
            for outcome in outcomes
            for partition, error in outcome.items()
        }

    def commit_nowait(self) -> None:
        """Send the acknowledgements without waiting. The acknowledgement callback is called with the outcome."""
        self._check_open()
        self._send_acknowledgements(self._timeout_ms)

    def _send_acknowledgements(self, timeout_ms: float) -> list[AcknowledgementRequest]:
        if not self._explicit:
            self._in_flight.accept_all()
        return self._fetcher.send_acknowledgements(self._in_flight.take_acks(), timeout_ms)

    def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Set a function that is called as `callback({partition: offsets}, error)` after each acknowledgement."""
        self._fetcher.acknowledgement_callback = callback

    @property
    def acquisition_lock_timeout(self) -> float | None:
        """How many seconds a record stays acquired by this consumer. None before the first fetch."""
        limit_ms = self._fetcher.lock_timeout_ms
        return None if limit_ms is None else limit_ms / 1000

    @property
    @deprecated(
        "ShareConsumer.acquisition_lock_timeout_ms is deprecated: use acquisition_lock_timeout, in seconds"
    )
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record stays acquired, in milliseconds. Deprecated: use `acquisition_lock_timeout`."""
        return self._fetcher.lock_timeout_ms

    # Statistics

    def statistics(self) -> dict[str, Any]:
        """Return counts of records, fetches and acknowledgements, and the state of the group."""
        membership = self._member.membership
        return {
            "records": self._records,
            "fetches": self._fetcher.fetches,
            "bytes": self._fetcher.bytes,
            "acknowledged": self._fetcher.acknowledged,
            "metadata_version": self._cluster.version,
            "partitions": sorted(map(str, self._subscription.assignment)),
            "group": {
                "state": membership.state.name.lower(),
                "epoch": membership.epoch,
                "member_id": membership.member_id,
                "heartbeats": self._member.heartbeats,
            },
        }


async def _all_done(pending_acknowledgements: Sequence[AcknowledgementRequest]) -> list[Any]:
    return [await asyncio.shield(pending.done) for pending in pending_acknowledgements]
