"""Sends the batches that are ready, and passes responses on.

One run of the sender does everything that can be done now. The event loop calls it, it never waits, and it sets a timer
for the next point in time at which something has to be done. Code that changes something calls `wake`.

W1  A broker has at most `max.in.flight.requests.per.connection` requests of this producer without a response.
W2  If a response does not come within `request.timeout.ms`, the connection is closed, since responses come in order.
W3  Nothing is sent to a broker while it throttles this client (throttle_time_ms).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.channel.link import LinkLost
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Closed, Unsupported
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.batch_completion import BatchCompletion, BatchResponse
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.destination_broker import DestinationBroker
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.in_flight_request import InFlightRequest, build_request
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.response_handler import ResponseHandler
from ottla.client.producer.send_schedule import NEVER
from ottla.client.producer.statistics import Statistics
from ottla.client.producer.transaction import ProducerTransaction, TransactionState
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from ottla.client.producer.transaction_client import TransactionClient

LOGGER = logging.getLogger("ottla.client")

# Event loops may round shorter times down to zero, and would call too early.
_TIMER_SECONDS_MIN = 0.001


class Sender:
    """The sending side of one producer."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: Accumulator,
        completion: BatchCompletion,
        statistics: Statistics,
        clock: Callable[[], float],
    ) -> None:
        self._config = config
        self._clock = clock
        self._timeout_s = config.request_timeout_ms / 1000
        self._cluster = cluster
        self._accumulator = accumulator
        self._schedule = accumulator.schedule
        self._completion = completion
        self._response_handler = ResponseHandler(cluster, completion, statistics, config)
        self._statistics = statistics
        self._identity: ProducerIdentity | None = None
        self._transaction: ProducerTransaction | None = None
        self._transaction_client: TransactionClient | None = None
        self._brokers: dict[int, DestinationBroker] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._run_handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._refresh_task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def set_idempotence(
        self,
        identity: ProducerIdentity,
        transaction: ProducerTransaction | None,
        transaction_client: "TransactionClient",
    ) -> None:
        """Number the batches as an idempotent producer."""
        self._identity, self._transaction, self._transaction_client = (
            identity,
            transaction,
            transaction_client,
        )

    # Runs

    def open(self) -> None:
        """Start on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._cluster.add_listener(self._on_metadata)
        self._on_metadata()
        self.wake()

    def wake(self) -> None:
        """Run soon."""
        if self._run_handle is None and self._loop is not None and not self._closed:
            self._run_handle = self._loop.call_soon(self._run)

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()

    def _run(self) -> None:
        self._run_handle = None
        self._accumulator.has_full_batch = False
        try:
            self._run_once()
        except Exception:
            # Without this the sender would never run again.
            LOGGER.exception("the sender failed, and goes on")
            assert self._loop is not None
            self._loop.call_later(self._config.retry_backoff_s, self.wake)

    def _run_once(self) -> None:
        now = self._clock()
        self._schedule.advance(now)
        self._completion.expire(now)
        for broker in self._brokers.values():
            if broker.in_flight and broker.in_flight[0].sent_at + self._timeout_s <= now:
                self._disconnect(broker)
        if self._identity is not None and not self._prepare_identity(self._identity, now):
            return
        for node in self._schedule.nodes():
            self._send_ready(self._broker(node), now)
        if self._schedule.leaderless and self._refresh_task is None:
            self._refresh_task = self._start(
                self._refresh_metadata({queue.topic for queue in self._schedule.leaderless})
            )
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        assert self._loop is not None
        soonest = min(self._schedule.next_time(), self._accumulator.incomplete.next_time())
        for broker in self._brokers.values():
            if broker.in_flight:
                soonest = min(soonest, broker.in_flight[0].sent_at + self._timeout_s)
            if (
                broker.blocked_since is not None
                and broker.connection is not None
                and broker.connection.throttled_until > now
            ):
                soonest = min(soonest, broker.connection.throttled_until)
        if soonest == NEVER or (self._timer is not None and self._timer_at <= soonest):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = soonest
        self._timer = self._loop.call_later(max(soonest - now, _TIMER_SECONDS_MIN), self._on_timer)

    def _prepare_identity(self, identity: ProducerIdentity, now: float) -> bool:
        """Get the producer id and transaction ready for sending. Return whether anything may be sent."""
        transaction, transaction_client = self._transaction, self._transaction_client
        assert transaction_client is not None
        if identity.has_unresolved:
            for queue, lost in identity.resolve().items():
                if lost and transaction is not None:
                    message = f"records for {queue} may or may not be written, and cannot be sent again"
                    transaction.must_abort_if_possible(ClientError(message))
                self._schedule.recheck(queue, now)
        if transaction is not None:
            if transaction.state is TransactionState.FATAL_ERROR:
                identity.fatal = identity.fatal or transaction.error
            elif transaction.state is TransactionState.ABORTABLE_ERROR and transaction.error is not None:
                self._accumulator.fail(transaction.error, numbered=False)
        if identity.fatal is not None:
            self._accumulator.fail(identity.fatal)
            return False
        if transaction is None:
            if identity.bump():
                self._schedule.recheck_all(now)
            if not identity.producer.is_known:
                transaction_client.request_producer_id()
        elif transaction.to_add:
            transaction_client.add_partitions()
        return True

    # Sending

    def _broker(self, node: int) -> DestinationBroker:
        broker = self._brokers.get(node)
        if broker is None:
            broker = self._brokers[node] = DestinationBroker(node)
        return broker

    def is_slow(self, node: int) -> bool:
        """Whether a broker has kept batches waiting for longer than `partitioner.availability.timeout.ms`."""
        broker = self._brokers.get(node)
        if not self._config.availability_s or broker is None or broker.blocked_since is None:
            return False
        return self._clock() - broker.blocked_since > self._config.availability_s

    def _send_ready(self, broker: DestinationBroker, now: float) -> None:
        """Send as many requests to one broker as allowed."""
        config = self._config
        if broker.blocked_since is None:
            broker.blocked_since = now
        if not broker.is_connected:
            if broker.connecting is None:
                broker.connecting = self._start(self._connect(broker))
            return
        connection = broker.connection
        assert connection is not None
        assert connection.link is not None
        while len(broker.in_flight) < config.in_flight_max and connection.throttled_until <= now:
            if not config.acks and connection.link.is_congested:
                # With acks=0 there is no other limit on what is sent.
                self._await_drain(broker)
                return
            batches = self._schedule.take(broker.node, config.request_bytes_max, self, now)
            broker.blocked_since = None
            if not batches:
                return
            self._send(broker, batches, now)

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        if self._transaction is not None and not self._transaction.may_send(queue):
            return False
        return self._identity is None or self._identity.may_send(queue, batch)

    def prepare_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        """Number and encode a batch that is sent now. Return its size."""
        if self._identity is not None:
            self._identity.assign_sequence(queue, batch)
        config, statistics = self._config, self._statistics
        first = not batch.plain_bytes
        ratio = batch.encode(config.codec, config.level, self._transaction is not None)
        size = len(batch.buffer)
        if first:
            waited = batch.sent_at - batch.created_at
            statistics.queue_seconds += waited
            statistics.queue_seconds_max = max(statistics.queue_seconds_max, waited)
            statistics.bytes_plain += batch.plain_bytes
            statistics.bytes_compressed += size
            if config.codec is not Codec.NONE:
                queue.topic_queues.observe(ratio)
            if batch.reserved > size:
                # The batch takes no more records.
                spare, batch.reserved = batch.reserved - size, size
                self._accumulator.buffer_pool.deallocate(spare)
        return size

    def _send(self, broker: DestinationBroker, batches: list[ProducerBatch], now: float) -> None:
        connection, statistics = broker.connection, self._statistics
        assert connection is not None
        assert connection.link is not None
        try:
            in_flight_request = build_request(
                batches, self._cluster, broker, self._config, self._transaction, now
            )
            statistics.requests += 1
            statistics.batches_sent += len(batches)
            statistics.bytes_sent += sum(len(batch.buffer) for batch in batches)
            connection.used_at = now
            if not self._config.acks:
                connection.link.tell(in_flight_request.request, in_flight_request.version)
                self._completion.handle_all(batches, BatchResponse(ErrorCode.NONE), now)
                return
            answered = partial(self._answered, broker, in_flight_request)
            broker.in_flight.append(in_flight_request)
            connection.link.ask(
                in_flight_request.request, ProduceResponse, in_flight_request.version, answered
            )
        except (Unsupported, ProtocolError) as error:
            if broker.in_flight and broker.in_flight[-1].batches is batches:
                broker.in_flight.pop()
            failure = BatchResponse(ErrorCode.UNSUPPORTED_VERSION, error=Unsupported(str(error)))
            self._completion.handle_all(batches, failure, now)

    def _await_drain(self, broker: DestinationBroker) -> None:
        """Run again when the socket of a broker accepts more data."""
        if broker.connecting is None:
            broker.connecting = self._start(self._drain(broker))

    async def _drain(self, broker: DestinationBroker) -> None:
        try:
            if broker.connection is not None and broker.connection.link is not None:
                await broker.connection.link.drain()
        finally:
            broker.connecting = None
            self.wake()

    # Responses

    def _answered(
        self,
        broker: DestinationBroker,
        in_flight_request: InFlightRequest,
        outcome: ProduceResponse | Exception,
    ) -> None:
        if self._closed:
            return
        now = self._clock()
        if in_flight_request in broker.in_flight:
            broker.in_flight.remove(in_flight_request)
        if isinstance(outcome, Exception):
            self._response_handler.handle_disconnect(broker, in_flight_request, outcome, now)
        else:
            took = now - in_flight_request.sent_at
            self._statistics.request_seconds += took
            self._statistics.request_seconds_max = max(self._statistics.request_seconds_max, took)
            self._response_handler.handle(broker, in_flight_request, outcome, now)
        self.wake()

    # Connections and metadata

    def _disconnect(self, broker: DestinationBroker) -> None:
        if broker.connection is not None and broker.connection.link is not None:
            broker.timed_out = True
            broker.connection.link.close(LinkLost("a produce request was not answered in time"))

    async def _connect(self, broker: DestinationBroker) -> None:
        try:
            broker.attach(await self._cluster.connections.connected(broker.node))
        except Closed:
            return
        except ClientError:
            self._cluster.request_refresh()
            await asyncio.sleep(self._config.retry_backoff_s)
        finally:
            broker.connecting = None
            self.wake()

    async def _refresh_metadata(self, topics: set[str]) -> None:
        """Refresh the metadata of topics without a known leader."""
        try:
            await self._cluster.refresh(topics)
            await asyncio.sleep(self._config.retry_backoff_s)
        except ClientError as error:
            LOGGER.debug("metadata could not be refreshed: %s", error)
            await asyncio.sleep(self._config.retry_backoff_s)
        finally:
            self._refresh_task = None
            self.wake()

    def _on_metadata(self) -> None:
        """Use new metadata."""
        now = self._clock()
        topics = self._cluster.topics
        for name, topic in topics.items():
            leaders = topic.leaders if topic.error is ErrorCode.NONE else {}
            self._accumulator.update_leaders(name, leaders, now, topic.id)
        for name in [name for name in self._accumulator.topics if name not in topics]:
            self._accumulator.forget(name)
        for broker in self._brokers.values():
            broker.connection = (
                None if broker.connection is not None and not broker.is_connected else broker.connection
            )
        self.wake()

    # Waiting and ending

    async def flush(self) -> None:
        """Wait until all batches that were begun before have ended."""
        assert self._loop is not None
        future: asyncio.Future[None] = self._loop.create_future()
        self._accumulator.incomplete.flush(lambda: None if future.done() else future.set_result(None))
        self.suspend_linger()
        try:
            await future
        finally:
            self.resume_linger()

    def suspend_linger(self) -> None:
        """Let no batch linger until `resume_linger` is called."""
        self._schedule.suspend_linger(self._clock())
        self.wake()

    def resume_linger(self) -> None:
        """Undo one `suspend_linger`."""
        self._schedule.resume_linger()

    def close(self) -> "list[asyncio.Task[None]]":
        """Stop running. Return the tasks that are being cancelled."""
        if self._loop is not None and not self._closed:
            self._cluster.remove_listener(self._on_metadata)
        self._closed = True
        for handle in (self._run_handle, self._timer):
            if handle is not None:
                handle.cancel()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        return tasks

    @property
    def in_flight(self) -> int:
        """How many requests have no response yet."""
        return sum(len(broker.in_flight) for broker in self._brokers.values())

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
