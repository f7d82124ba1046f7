"""The producer: sends records in batches, and tells the outcome of each.

    async with Producer("localhost:9092") as producer:
        delivery = await producer.send("greetings", b"hello")
        metadata = await delivery

Z1  Every call that waits can be cancelled: the record is then either accepted or not, and no resource is leaked.
Z2  After `close` every delivery has ended, and no task or connection of the producer is left.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from ottla.client.cluster import Leader
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.deprecation import deprecated, renamed_durations
from ottla.client.duration import Duration, Time, seconds
from ottla.client.errors import BufferFull, ClientError, Closed, MustAbort, TimedOut, TopicUnknown, WrongState
from ottla.client.producer.accumulator import RecordHeaders
from ottla.client.producer.delivery import LOGGER, Delivery
from ottla.client.producer.parts import ProducerParts
from ottla.client.producer.statistics import Statistics
from ottla.client.producer.transaction import TransactionState, repeated_error
from ottla.client.producer.transaction_client import TransactionClient
from ottla.client.producer.transaction_offsets import GroupMember
from ottla.client.record import OffsetAndMetadata, RecordMetadata, TopicPartition
from ottla.client.settings import resolve
from ottla.client.system_interfaces import SystemInterfaces


class Producer:
    """Sends records to topics. Open it with `async with`, or with `open` and `close`.

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
        parts = ProducerParts.of(
            resolve("producer", bootstrap_servers, settings, keywords), interfaces=self._interfaces
        )
        self._config = parts.config
        self._cluster = parts.cluster
        self._accumulator = parts.accumulator
        self._sender = parts.sender
        self._counts = parts.statistics
        self._identity = parts.identity
        self._transaction_client = parts.transaction_client
        self._transaction = parts.transaction
        self._preparation = parts.preparation
        self._append = parts.accumulator.append
        self._accumulator.check_may_append = self._guard
        if self._preparation is None and type(self).send_nowait is Producer.send_nowait:
            # This saves one function call for each record.
            self.send_nowait = self._append  # type: ignore[method-assign]
        self._is_open = False
        self._closing: asyncio.Task[None] | None = None

    # Life

    async def open(self) -> Self:
        """Connect to a broker; `async with` does this too.

        Raises NoBroker if no broker answers within max.block.ms.
        """
        if self._closing is not None:
            raise Closed("the producer is closed", hint="make another")
        if self._is_open:
            return self
        try:
            await self._cluster.open(self._config.block_s * 1000)
        except BaseException:
            await self._cluster.close()
            raise
        self._is_open = True
        self._sender.open()
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    async def close(self, *, timeout: Duration | None = None) -> None:
        """Send all records, wait for the outcomes, abort an open transaction, and disconnect.

        Records that have no outcome after `timeout` fail with Closed. Without a timeout, delivery.timeout.ms is the
        limit.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(None if timeout is None else seconds(timeout)))
        await asyncio.shield(self._closing)

    async def _close(self, timeout_s: float | None) -> None:
        self._accumulator.seal_all()
        try:
            if self._is_open:
                async with asyncio.timeout(timeout_s):
                    await self._finish()
        except TimeoutError:
            LOGGER.warning("the producer was closed before all records were sent")
        except ClientError as error:
            LOGGER.warning("the producer was closed with its transaction open: %s", error)
        finally:
            tasks = self._sender.close()
            if self._transaction_client is not None:
                tasks += self._transaction_client.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, ClientError):
                    await task
            self._accumulator.fail(Closed("the producer was closed before the record was written"))
            await self._cluster.close()
            if self._preparation is not None:
                self._preparation.close()

    async def _finish(self) -> None:
        transaction = self._transaction
        if transaction is not None and transaction.is_ongoing and self._transaction_client is not None:
            if transaction.is_completing:
                await self._sender.flush()
                await self._transaction_client.wait_for_operation()
            else:
                await self._transaction_client.abort()
        else:
            await self._sender.flush()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Records

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> Delivery:
        """Add a record to a batch without waiting, and return its Delivery.

        Raises TopicUnknown if nothing was sent to the topic before, and BufferFull if the buffer has no room; `send`
        waits in both cases. Raises the other errors of `send` as well.
        """
        preparation = self._preparation
        if preparation is None:
            return self._append(topic, value, key, partition, timestamp, headers)
        record = preparation.prepare(topic, value, key, partition, timestamp, headers)
        try:
            delivery = self._append(*record)
        except ClientError as error:
            preparation.report_refused(record, error)
            raise
        preparation.add_callbacks(delivery)
        return delivery

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> Delivery:
        """Add a record to a batch, and return its Delivery, which knows the outcome later.

        `timestamp` is in milliseconds since 1970, or a datetime; without one it is the current time. Without a
        partition, the key or the partitioner chooses it.

        Waits up to max.block.ms for metadata of the topic and for room in the buffer. Raises TimedOut or Refused if
        there is no metadata, BufferFull if there is no room, RecordTooLarge or SerializationFailed if the record is
        wrong, and Closed. With transactions, raises WrongState if none is open, MustAbort if it has failed, and Fenced
        if another producer has the same transactional.id.
        """
        preparation = self._preparation
        if preparation is None:
            try:
                delivery = self._append(topic, value, key, partition, timestamp, headers)
            except (TopicUnknown, BufferFull) as error:
                delivery = await self._append_waiting(error, topic, value, key, partition, timestamp, headers)
        else:
            record = preparation.prepare(topic, value, key, partition, timestamp, headers)
            try:
                try:
                    delivery = self._append(*record)
                except (TopicUnknown, BufferFull) as error:
                    delivery = await self._append_waiting(error, *record)
            except ClientError as error:
                preparation.report_refused(record, error)
                raise
            preparation.add_callbacks(delivery)
        if self._accumulator.has_full_batch:
            # A batch is full. If the sender did not run now, a loop of sends would first fill the whole buffer.
            await asyncio.sleep(0)
        return delivery

    async def send_and_wait(
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
        return await (await self.send(topic, value, key, partition, timestamp, headers))

    @deprecated("Producer.deliver is deprecated: use Producer.send_and_wait")
    async def deliver(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> RecordMetadata:
        """Send a record and wait until it is written. Deprecated: use `send_and_wait`."""
        return await self.send_and_wait(topic, value, key, partition, timestamp, headers)

    async def flush(self) -> None:
        """Send all waiting records now, and wait until the outcome of each is known.

        Does not raise the errors of records: their deliveries do.
        """
        self._check_open()
        await self._sender.flush()

    async def partitions_for(self, topic: str) -> dict[int, Leader]:
        """Return the partitions of a topic, each with its leader and replicas. Raises Refused or TimedOut."""
        self._check_open()
        return dict((await self._cluster.topic(topic, self._config.block_s * 1000)).leaders)

    def statistics(self) -> Statistics:
        """Return counts since the producer was opened, and the current state of its buffer."""
        counts, accumulator = self._counts.copy(), self._accumulator
        counts.records_failed += accumulator.dropped
        counts.buffer_bytes_free = accumulator.buffer_pool.free
        counts.waiting = accumulator.buffer_pool.waiting
        counts.batches_pending = len(accumulator.incomplete)
        counts.requests_in_flight = self._sender.in_flight
        return counts

    # Transactions

    async def init_transactions(self) -> None:
        """Register this producer under its transactional.id. Call it once, before the first transaction.

        Open transactions of an earlier producer with the same id are aborted, and that producer is fenced. Raises
        TimedOut after max.block.ms, and the call can then be repeated. Raises Refused if it is not allowed.
        """
        self._check_open()
        await self._transactions().initialize()

    def begin_transaction(self) -> None:
        """Begin a transaction. Raises WrongState if one is open, MustAbort if one has failed, and Fenced."""
        self._check_open()
        self._transactions().begin()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
    ) -> None:
        """Add offsets of a consumer group to the transaction. They are committed together with its records.

        `group_metadata` is that of the consumer, or the id of a group without members. Raises MustAbort if the group
        was rebalanced meanwhile.
        """
        self._check_open()
        given = {
            TopicPartition(*partition): OffsetAndMetadata(each) if isinstance(each, int) else each
            for partition, each in offsets.items()
        }
        await self._transactions().send_offsets(given, GroupMember.of(group_metadata))

    @deprecated("Producer.send_offsets is deprecated: use Producer.send_offsets_to_transaction")
    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
    ) -> None:
        """Add offsets to the transaction. Deprecated: use `send_offsets_to_transaction`."""
        await self.send_offsets_to_transaction(offsets, group_metadata)

    async def commit_transaction(self) -> None:
        """Send all records of the transaction, and commit it.

        Raises MustAbort if a record or an offset was not written, and Fenced if another producer has the same
        transactional.id. Raises TimedOut after max.block.ms; the transaction may be committed nevertheless, and the
        call can be repeated to wait for it.
        """
        self._check_open()
        await self._transactions().commit()
        self._counts.transactions_committed += 1

    async def abort_transaction(self) -> None:
        """Abort the transaction. Its records that were not sent yet fail with Aborted."""
        self._check_open()
        await self._transactions().abort()
        self._counts.transactions_aborted += 1

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Begin a transaction that is committed at the end of the block, and aborted if the block raises.

        Calls `init_transactions` first, if nobody has. Raises the errors of `commit_transaction`; after MustAbort the
        transaction is aborted, and the block can be repeated.
        """
        await self._begin()
        try:
            yield self
        except BaseException:
            await self._abort_quietly()
            raise
        try:
            await self.commit_transaction()
        except MustAbort:
            await self._abort_quietly()
            raise

    async def _begin(self) -> None:
        if self._transactions().transaction.state is TransactionState.UNINITIALIZED:
            await self.init_transactions()
        self.begin_transaction()

    async def _abort_quietly(self) -> None:
        """Abort after an error. An error of the abort itself is only logged."""
        try:
            await self.abort_transaction()
        except ClientError as error:
            LOGGER.warning("the transaction could not be aborted: %s", error)

    # Shared by the calls

    def _transactions(self) -> TransactionClient:
        if self._transaction_client is None or self._transaction is None:
            raise WrongState("the producer has no transactions", hint="give it a transactional.id")
        return self._transaction_client

    def _check_open(self) -> None:
        if self._closing is not None:
            raise Closed("the producer is closed", hint="make another")
        if not self._is_open:
            raise WrongState("the producer is not open", hint="use it in `async with`, or await open() first")

    def _guard(self) -> None:
        """Raise if no batch may be begun now."""
        if self._closing is not None:
            raise Closed("the producer is closed", hint="make another")
        if self._identity is not None and self._identity.fatal is not None:
            raise repeated_error(self._identity.fatal)
        if self._transaction is not None:
            self._transaction.check("send", TransactionState.IN_TRANSACTION)

    async def _append_waiting(
        self,
        error: TopicUnknown | BufferFull,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: Time | None,
        headers: RecordHeaders,
    ) -> Delivery:
        """Wait for metadata or for room in the buffer, and append a record."""
        accumulator, loop = self._accumulator, asyncio.get_running_loop()
        deadline = loop.time() + self._config.block_s
        while True:
            self._check_open()
            if loop.time() >= deadline:
                raise error
            if isinstance(error, BufferFull):
                await self._await_buffer(accumulator.missing_bytes, deadline, error)
            else:
                await self._await_topic(topic, partition, deadline, error)
            try:
                return accumulator.append(topic, value, key, partition, timestamp, headers)
            except (TopicUnknown, BufferFull) as repeated_error:
                error = repeated_error
            finally:
                # `_await_buffer` reserved these bytes. They are not needed if another call has begun a batch meanwhile.
                accumulator.give_back()

    async def _await_topic(
        self, name: str, partition: int | None, deadline: float, error: TopicUnknown
    ) -> None:
        loop = asyncio.get_running_loop()
        topic = await self._cluster.topic(name, max(deadline - loop.time(), 0) * 1000)
        if partition is None or partition in topic.leaders:
            return
        if partition < 0:
            raise error
        # The topic may have grown.
        await asyncio.sleep(min(self._config.retry_backoff_s, max(deadline - loop.time(), 0)))
        if loop.time() >= deadline:
            raise error
        with suppress(TimedOut):
            await self._cluster.refresh([name])

    async def _await_buffer(self, size: int, deadline: float, error: BufferFull) -> None:
        """Wait for the bytes of a batch, and reserve them for the next one. No batch lingers meanwhile."""
        buffer_pool, loop = self._accumulator.buffer_pool, asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        request = buffer_pool.enqueue(size, partial(_resolve, future, True))
        timer = loop.call_at(deadline, _resolve, future, False)
        self._sender.suspend_linger()
        try:
            if not await future:
                raise error
        except BaseException:
            buffer_pool.cancel(request)
            raise
        finally:
            timer.cancel()
            self._sender.resume_linger()
        self._accumulator.reserved_bytes = request.size


def _resolve(future: "asyncio.Future[bool]", outcome: bool) -> None:
    if not future.done():
        future.set_result(outcome)
