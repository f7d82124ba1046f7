"""The share consumer: many consumers read the same partitions, and each record is delivered to one of them.

    async with ShareConsumer("localhost:9092", group_id="workers") as consumer:
        await consumer.subscribe(["jobs"])
        while True:
            for record in await consumer.poll():
                work(record)

Z1  Every call that waits can be cancelled, and nothing is lost by it: what was acquired comes with the next poll.
Z2  After `close` no task and no connection of the consumer is left; records that were not acknowledged go to others.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from ottla.client.cluster import Cluster
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.share.acknowledgement import AcknowledgeType
from ottla.client.consumer.share.courier import AcknowledgementCallback, Courier, Errand
from ottla.client.consumer.share.delivery import Deliveries
from ottla.client.consumer.share.member import ShareMember
from ottla.client.consumer.subscription import Kind, Subscription
from ottla.client.deprecation import deprecated, renamed_durations
from ottla.client.doors import Doors
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, Closed, WrongState, refused
from ottla.client.links import Links
from ottla.client.record import Record, TopicPartition
from ottla.client.settings import resolve
from ottla.world.entropy import RealEntropy

__all__ = ["AcknowledgeType", "ShareConsumer"]

_LONG_S = 3_600.0


class ShareConsumer:
    """Reads records as a member of a share group. Open it with `async with`, or with `open` and `close`.

    Each record is delivered to one member, which acknowledges it. Use the consumer from one task at a time.

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
        self._settings = resolve("share", bootstrap_servers, settings, keywords)
        network, entropy = self._doors.network, self._doors.entropy or RealEntropy()
        self._cluster = Cluster(self._settings, Links(self._settings, network, entropy))
        self._links = Links(self._settings, network, entropy)
        group_links = Links(self._settings, network, entropy)
        self._bell, self._subscription = Bell(), Subscription()
        self._coordinator = Coordinator(self._settings, self._cluster, group_links)
        self._member = ShareMember(
            self._settings,
            self._cluster,
            self._coordinator,
            self._subscription,
            self._bell,
            group_links,
            entropy,
        )
        self._deliveries = Deliveries()
        self._courier = Courier(
            self._settings,
            self._cluster,
            self._links,
            self._subscription,
            self._deliveries,
            self._bell,
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
        self._cluster.listen(self._bell.ring)
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def close(self, *, timeout: Duration = 30.0) -> None:
        """Send acknowledgements, release all other records, leave the group, and disconnect."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(seconds(timeout)))
        await asyncio.shield(self._closing)

    async def _close(self, timeout_s: float) -> None:
        self._bell.ring()
        try:
            if self._is_open:
                self._courier.want(False)
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        errands = self._courier.carry(
                            self._deliveries.take_acks(), timeout_s * 1000, closing=True
                        )
                        await _all_done(errands)
                await self._member.leave(timeout_s)
        finally:
            await self._member.close()
            await self._courier.close()
            await self._coordinator.close()
            self._links.close()
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
        if self._subscription.kind is Kind.NONE:
            raise WrongState("there is nothing to read", hint="subscribe to topics")
        self._conclude()
        loop = asyncio.get_running_loop()
        deadline = float("inf") if timeout is None else loop.time() + seconds(timeout)
        self._polling = True
        self._member.enter(loop.time())
        try:
            # An application that is always served at once must not keep heartbeats, and answers, from their turns.
            await asyncio.sleep(0)
            while True:
                await self._member.tend()
                found = self._deliveries.take_renewed() or self._collect()
                if found:
                    # What is to be acknowledged has no fetch to ride with.
                    self._courier.carry({}, self._timeout_ms)
                    self._records += len(found)
                    return found
                self._raise_errors()
                if self._deliveries.renew:
                    # Those come first, so there is nothing to fetch, and nothing to ride with.
                    self._courier.carry({}, self._timeout_ms)
                else:
                    self._courier.want(True)
                now = loop.time()
                if now >= deadline:
                    return []
                await self._bell.heard(min(deadline - now, _LONG_S))
                self._check_open()
        finally:
            self._polling = False
            self._courier.want(False)
            self._member.exit(loop.time())

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        while True:
            for record in await self.poll(timeout=None):
                yield record

    def _conclude(self) -> None:
        """Be done with the records of the poll before."""
        if not self._explicit:
            self._deliveries.accept_all()
        elif self._deliveries.is_open:
            raise WrongState(
                "not all records of the poll before were acknowledged",
                hint="with share.acknowledgement.mode=explicit, acknowledge each before the next poll",
            )
        self._courier.ride(self._deliveries.take_acks())

    def _collect(self) -> list[Record]:
        found: list[Record] = []
        pieces = self._courier.pieces
        while pieces and len(found) < self._records_max:
            tip, node, piece = pieces[0]
            if piece.fault is not None and found:
                break
            pieces.popleft()
            self._deliveries.add(tip, node, piece.records, piece.acks)
            if piece.fault is not None:
                raise piece.fault
            found = found + piece.records if found else piece.records
        if not found:
            # Gaps alone are nothing to hand out, and nothing to wait with.
            self._courier.ride(self._deliveries.take_acks())
        return found

    def _raise_errors(self) -> None:
        if self._courier.errors:
            raise self._courier.errors.pop(0)
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
        self._deliveries.acknowledge(record[0], record[1], record[2], AcknowledgeType(kind))

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def commit(self, *, timeout: Duration | None = None) -> dict[TopicPartition, ClientError | None]:
        """Send the acknowledgements, wait for the answers, and return for each partition an error, or None."""
        self._check_open()
        limit_ms = self._timeout_ms if timeout is None else seconds(timeout) * 1000
        outcomes = await _all_done(self._carry(limit_ms))
        return {
            TopicPartition(tip.topic, tip.partition): error
            for outcome in outcomes
            for tip, error in outcome.items()
        }

    def commit_nowait(self) -> None:
        """Send the acknowledgements without waiting. The acknowledgement callback is called with the outcome."""
        self._check_open()
        self._carry(self._timeout_ms)

    def _carry(self, timeout_ms: float) -> list[Errand]:
        if not self._explicit:
            self._deliveries.accept_all()
        return self._courier.carry(self._deliveries.take_acks(), timeout_ms)

    def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Set a function that is called as `callback({partition: offsets}, error)` after each acknowledgement."""
        self._courier.told = callback

    @property
    def acquisition_lock_timeout(self) -> float | None:
        """How many seconds a record stays acquired by this consumer. None before the first fetch."""
        limit_ms = self._courier.lock_timeout_ms
        return None if limit_ms is None else limit_ms / 1000

    @property
    @deprecated(
        "ShareConsumer.acquisition_lock_timeout_ms is deprecated: use acquisition_lock_timeout, in seconds"
    )
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record stays acquired, in milliseconds. Deprecated: use `acquisition_lock_timeout`."""
        return self._courier.lock_timeout_ms

    # What there is to tell

    def statistics(self) -> dict[str, Any]:
        """Return counts of records, fetches and acknowledgements, and the state of the group."""
        membership = self._member.membership
        return {
            "records": self._records,
            "fetches": self._courier.fetches,
            "bytes": self._courier.bytes,
            "acknowledged": self._courier.acknowledged,
            "metadata_version": self._cluster.version,
            "partitions": sorted(map(str, self._subscription.readings)),
            "group": {
                "state": membership.state.name.lower(),
                "epoch": membership.epoch,
                "member_id": membership.member_id,
                "heartbeats": self._member.heartbeats,
            },
        }


async def _all_done(errands: Sequence[Errand]) -> list[Any]:
    return [await asyncio.shield(errand.done) for errand in errands]
