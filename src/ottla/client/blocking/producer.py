"""The producer without asyncio.

Q1  `send` puts a record in a queue and returns. The event loop takes all queued records at once. A call across threads
    for every record would take thirty times as long.
Q2  Records of one thread are taken in the order in which they were sent. Commits and flushes come after all of them.
Q3  While the buffer has no room, calls of `send` wait up to `max.block.ms`.
Q4  `send` raises the errors of a record that are known at once. Its Delivery raises later ones. An error is logged if
    the application never looks at the delivery.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from ottla.client.blocking.client import BlockingClient
from ottla.client.blocking.delivery import Delivery, refuse
from ottla.client.cluster import Leader
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.deprecation import deprecated, renamed_durations
from ottla.client.duration import Duration, Time
from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    MustAbort,
    SerializationFailed,
    TopicUnknown,
    WrongState,
)
from ottla.client.producer.accumulator import RecordHeaders, as_bytes
from ottla.client.producer.producer import Producer as AsyncProducer
from ottla.client.producer.statistics import Statistics
from ottla.client.record import OffsetAndMetadata, RecordMetadata, TopicPartition
from ottla.world.loop_thread import Gate

LOGGER = logging.getLogger("ottla.client")
_HANDED_OVER_MAX = 20_000
_AT_ONCE = 1_000


class Producer(BlockingClient[AsyncProducer]):
    """Sends records to topics. Open it with `with`, or with `open` and `close`.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        self._queue: deque[Delivery] = deque()
        self._late: list[tuple[Delivery, Callable[[Delivery], object]]] = []
        self._gate = Gate()
        self._draining = False
        self._wait_task: asyncio.Task[None] | None = None
        self._is_in_use = False
        super().__init__(lambda: AsyncProducer(bootstrap_servers, settings, **keywords))
        self._is_plain = self._client._preparation is None
        self._block_s: float = self._client._config.block_s

    # Life

    def open(self) -> Self:
        """Connect to a broker; `with` does this too.

        Raises NoBroker if no broker answers within max.block.ms.
        """
        self._run(self._client.open())
        self._is_in_use = True
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def close(self, *, timeout: Duration | None = None) -> None:
        """Send all records, wait for the outcomes, abort an open transaction, and disconnect.

        Records that have no outcome after `timeout` fail with Closed. Without a timeout, delivery.timeout.ms is the
        limit.
        """
        self._is_in_use = False
        self._close(self._after_sent(lambda: self._client.close(timeout=timeout)))

    # Records

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> Delivery:
        """Hand a record to the client, and return its Delivery, which knows the outcome later.

        `timestamp` is in milliseconds since 1970, or a datetime; without one it is the current time. Without a
        partition, the key or the partitioner chooses it.

        Returns at once if there is room in the buffer, and waits up to max.block.ms otherwise. Raises BufferFull if
        there is no room, SerializationFailed if the record has a wrong type, WrongState before `open`, and Closed. All
        other errors of the record are raised by its Delivery; an error that nobody asks for is logged.
        """
        if self._is_plain:
            if value.__class__ is not bytes and value is not None:
                as_bytes(value, "value")
            if key.__class__ is not bytes and key is not None:
                as_bytes(key, "key")
        if topic.__class__ is not str:
            raise SerializationFailed(f"{topic!r:.100} is not a topic name", hint="a name is a str")
        if not self._is_in_use:
            self._refuse()
        if not self._gate.is_open:
            self._await_room()
        delivery = Delivery(self, (topic, value, key, partition, timestamp, headers))
        queue = self._queue
        queue.append(delivery)
        if not self._draining:
            self._draining = True
            self._thread.call(self._drain)
        elif len(queue) > _HANDED_OVER_MAX:
            self._gate.shut()
        return delivery

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> Delivery:
        """Hand a record to the client without waiting for room. Raises BufferFull if there is none.

        Raises the other errors of `send` as well.
        """
        if not self._gate.is_open:
            raise BufferFull("there is no room for another record")
        return self.send(topic, value, key, partition, timestamp, headers)

    def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> RecordMetadata:
        """Send a record, wait until it is written, and return where it was stored.

        Raises the errors of `send` and of its Delivery.
        """
        return self.send(topic, value, key, partition, timestamp, headers).result()

    @deprecated("Producer.deliver is deprecated: use Producer.send_and_wait")
    def deliver(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> RecordMetadata:
        """Send a record and wait until it is written. Deprecated: use `send_and_wait`."""
        return self.send_and_wait(topic, value, key, partition, timestamp, headers)

    def flush(self) -> None:
        """Send all waiting records now, and wait until the outcome of each is known.

        Does not raise the errors of records: their deliveries do.
        """
        self._run(self._after_sent(self._client.flush))

    def partitions_for(self, topic: str) -> dict[int, Leader]:
        """Return the partitions of a topic, each with its leader and replicas. Raises Refused or TimedOut."""
        return self._run(self._client.partitions_for(topic))

    def statistics(self) -> Statistics:
        """Return counts since the producer was opened, and the current state of its buffer."""
        return self._call(self._client.statistics)

    # Transactions

    def init_transactions(self) -> None:
        """Register this producer under its transactional.id. Call it once, before the first transaction.

        Open transactions of an earlier producer with the same id are aborted, and that producer is fenced. Raises
        TimedOut after max.block.ms, and the call can then be repeated. Raises Refused if it is not allowed.
        """
        self._run(self._client.init_transactions())

    def begin_transaction(self) -> None:
        """Begin a transaction. Raises WrongState if one is open, MustAbort if one has failed, and Fenced."""
        self._call(self._client.begin_transaction)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
    ) -> None:
        """Add offsets of a consumer group to the transaction. They are committed together with its records.

        `group_metadata` is that of the consumer, or the id of a group without members. Raises MustAbort if the group
        was rebalanced meanwhile.
        """
        self._run(self._client.send_offsets_to_transaction(offsets, group_metadata))

    @deprecated("Producer.send_offsets is deprecated: use Producer.send_offsets_to_transaction")
    def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
    ) -> None:
        """Add offsets to the transaction. Deprecated: use `send_offsets_to_transaction`."""
        self.send_offsets_to_transaction(offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Send all records of the transaction, and commit it.

        Raises MustAbort if a record or an offset was not written, and Fenced if another producer has the same
        transactional.id. Raises TimedOut after max.block.ms; the transaction may be committed nevertheless, and the
        call can be repeated to wait for it.
        """
        self._run(self._after_sent(self._client.commit_transaction))

    def abort_transaction(self) -> None:
        """Abort the transaction. Its records that were not sent yet fail with Aborted."""
        self._run(self._after_sent(self._client.abort_transaction))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction that is committed at the end of the block, and aborted if the block raises.

        Calls `init_transactions` first, if nobody has. Raises the errors of `commit_transaction`; after MustAbort the
        transaction is aborted, and the block can be repeated.
        """
        self._run(self._client._begin())
        try:
            yield self
        except BaseException:
            self._abort_quietly()
            raise
        try:
            self.commit_transaction()
        except MustAbort:
            self._abort_quietly()
            raise

    # What the calls have in common

    def _refuse(self) -> None:
        if self._is_borrowed:
            raise WrongState(
                "the producer is not open", hint="use it in a `with` block, or call open() first"
            )
        raise Closed("the producer is closed", hint="make another")

    def _abort_quietly(self) -> None:
        try:
            self.abort_transaction()
        except ClientError as error:
            LOGGER.warning("the transaction could not be aborted: %s", error)

    async def _after_sent(self, call: Callable[[], Awaitable[None]]) -> None:
        """Call the client once it has taken every record that was handed over before."""
        await self._drained()
        await call()

    def _await_room(self) -> None:
        if self._thread.is_here:
            raise BufferFull("there is no room for another record", hint="a callback must not wait for room")
        if not self._gate.wait(self._block_s):
            raise BufferFull(
                f"there was no room for another record within {self._block_s:g} s",
                hint="raise buffer.memory or max.block.ms, or send less",
            )

    # On the loop

    def _drain(self) -> None:
        """Take what was handed over, as long as that needs no waiting."""
        if self._wait_task is not None:
            return
        queue, send = self._queue, self._client.send_nowait
        left = _AT_ONCE
        while queue:
            delivery = queue[0]
            assert delivery._record is not None
            try:
                delivery._inner = send(*delivery._record)
                delivery._record = None
            except (TopicUnknown, BufferFull):
                self._gate.shut()
                self._wait_task = asyncio.get_running_loop().create_task(self._wait_with(delivery))
                return
            except Exception as error:  # noqa: BLE001  # others wait behind it
                refuse(delivery, error)
            queue.popleft()
            left -= 1
            if not left:
                # Sockets have their turn.
                asyncio.get_running_loop().call_soon(self._drain)
                return
        self._gate.open()
        self._draining = False
        if queue:
            # Handed over between the last look and the line before.
            self._draining = True
            asyncio.get_running_loop().call_soon(self._drain)
        if self._late:
            late, self._late = self._late, []
            for delivery, callback in late:
                delivery._watch(callback)

    async def _wait_with(self, delivery: Delivery) -> None:
        assert delivery._record is not None
        try:
            delivery._inner = await self._client.send(*delivery._record)
            delivery._record = None
        except Exception as error:  # noqa: BLE001  # others wait behind it
            refuse(delivery, error)
        finally:
            self._wait_task = None
        self._queue.popleft()
        self._drain()

    async def _drained(self) -> None:
        """Wait until everything that was handed over before is with the producer."""
        last = self._queue[-1] if self._queue else None
        while last is not None and last._inner is None and last._error is None:
            self._drain()
            if self._wait_task is not None:
                await asyncio.wait([self._wait_task])
            else:
                await asyncio.sleep(0)
