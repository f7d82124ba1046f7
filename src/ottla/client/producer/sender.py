"""Sends what is ready, whenever something has changed, and hands the answers on.

One turn of the sender does everything that can be done now: it is called by the loop, never waits, and sets an alarm
for the next thing that time alone will bring about. Whoever changes something calls `wake`.

W1  A broker has at most `max.in.flight.requests.per.connection` requests of ours without an answer.
W2  A request that is not answered within `request.timeout.ms` costs the connection, since answers come in order.
W3  A broker that asks for patience is left in peace for that long.
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
from ottla.client.producer.answers import Answers
from ottla.client.producer.batch import Batch
from ottla.client.producer.courier import Courier
from ottla.client.producer.identity import Identity
from ottla.client.producer.lane import Lane
from ottla.client.producer.parcel import Parcel, pack
from ottla.client.producer.schedule import NEVER
from ottla.client.producer.settlement import Answer, Settlement
from ottla.client.producer.tally import Statistics
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import State, Transaction
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from ottla.client.producer.transactor import Transactor

LOGGER = logging.getLogger("ottla.client")

# Loops may round what is shorter down to nothing, and would come back too early, again and again.
_ALARM_SECONDS_MIN = 0.001


class Sender:
    """The sending side of one producer."""

    def __init__(
        self,
        terms: Terms,
        cluster: Cluster,
        accumulator: Accumulator,
        settlement: Settlement,
        statistics: Statistics,
        clock: Callable[[], float],
    ) -> None:
        self._terms = terms
        self._clock = clock
        self._timeout_s = terms.request_timeout_ms / 1000
        self._cluster = cluster
        self._accumulator = accumulator
        self._schedule = accumulator.schedule
        self._settlement = settlement
        self._answers = Answers(cluster, settlement, statistics, terms)
        self._statistics = statistics
        self._identity: Identity | None = None
        self._transaction: Transaction | None = None
        self._transactor: Transactor | None = None
        self._couriers: dict[int, Courier] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn_due: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._seeking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def bear(self, identity: Identity, transaction: Transaction | None, transactor: "Transactor") -> None:
        """Have what is sent bear the numbers of an idempotent producer."""
        self._identity, self._transaction, self._transactor = identity, transaction, transactor

    # Turns

    def open(self) -> None:
        """Begin, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._cluster.listen(self._learn)
        self._learn()
        self.wake()

    def wake(self) -> None:
        """Have a turn soon."""
        if self._turn_due is None and self._loop is not None and not self._closed:
            self._turn_due = self._loop.call_soon(self._turn)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    def _turn(self) -> None:
        self._turn_due = None
        self._accumulator.pressing = False
        try:
            self._work()
        except Exception:
            # Nobody else would ever give it another turn.
            LOGGER.exception("the sender failed, and goes on")
            assert self._loop is not None
            self._loop.call_later(self._terms.retry_backoff_s, self.wake)

    def _work(self) -> None:
        now = self._clock()
        self._schedule.advance(now)
        self._settlement.expire(now)
        for courier in self._couriers.values():
            if courier.in_flight and courier.in_flight[0].at + self._timeout_s <= now:
                self._hang_up(courier)
        if self._identity is not None and not self._prepare(self._identity, now):
            return
        for node in self._schedule.nodes():
            self._serve(self._courier(node), now)
        if self._schedule.homeless and self._seeking is None:
            self._seeking = self._start(self._seek({lane.topic for lane in self._schedule.homeless}))
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        assert self._loop is not None
        soonest = min(self._schedule.next_time(), self._accumulator.pending.next_time())
        for courier in self._couriers.values():
            if courier.in_flight:
                soonest = min(soonest, courier.in_flight[0].at + self._timeout_s)
            if (
                courier.stuck_since is not None
                and courier.peer is not None
                and courier.peer.muted_until > now
            ):
                soonest = min(soonest, courier.peer.muted_until)
        if soonest == NEVER or (self._alarm is not None and self._alarm_at <= soonest):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = soonest
        self._alarm = self._loop.call_later(max(soonest - now, _ALARM_SECONDS_MIN), self._ring)

    def _prepare(self, identity: Identity, now: float) -> bool:
        """See to what has to be before anything may leave; whether something may."""
        transaction, transactor = self._transaction, self._transactor
        assert transactor is not None
        if identity.has_unresolved:
            for lane, lost in identity.resolve().items():
                if lost and transaction is not None:
                    message = f"records for {lane} may or may not be written, and cannot be sent again"
                    transaction.must_abort_if_possible(ClientError(message))
                self._schedule.poke(lane, now)
        if transaction is not None:
            if transaction.state is State.DOOMED:
                identity.fatal = identity.fatal or transaction.error
            elif transaction.state is State.BROKEN and transaction.error is not None:
                self._accumulator.fail(transaction.error, numbered=False)
        if identity.fatal is not None:
            self._accumulator.fail(identity.fatal)
            return False
        if transaction is None:
            if identity.bump():
                self._schedule.poke_all(now)
            if not identity.producer.is_known:
                transactor.obtain()
        elif transaction.new:
            transactor.add_partitions()
        return True

    # Sending

    def _courier(self, node: int) -> Courier:
        courier = self._couriers.get(node)
        if courier is None:
            courier = self._couriers[node] = Courier(node)
        return courier

    def is_slow(self, node: int) -> bool:
        """Whether a broker has kept batches waiting for longer than `partitioner.availability.timeout.ms`."""
        courier = self._couriers.get(node)
        if not self._terms.availability_s or courier is None or courier.stuck_since is None:
            return False
        return self._clock() - courier.stuck_since > self._terms.availability_s

    def _serve(self, courier: Courier, now: float) -> None:
        """Send to one broker as much as may be."""
        terms = self._terms
        if courier.stuck_since is None:
            courier.stuck_since = now
        if not courier.is_connected:
            if courier.connecting is None:
                courier.connecting = self._start(self._connect(courier))
            return
        peer = courier.peer
        assert peer is not None
        assert peer.link is not None
        while len(courier.in_flight) < terms.in_flight_max and peer.muted_until <= now:
            if not terms.acks and peer.link.is_congested:
                # Nothing else would ever stop the flow of what nobody answers.
                self._await_room(courier)
                return
            batches = self._schedule.take(courier.node, terms.request_bytes_max, self, now)
            courier.stuck_since = None
            if not batches:
                return
            self._send(courier, batches, now)

    def may_leave(self, lane: Lane, batch: Batch) -> bool:
        """Whether the first batch of a lane may be sent now."""
        if self._transaction is not None and not self._transaction.may_leave(lane):
            return False
        return self._identity is None or self._identity.may_leave(lane, batch)

    def leave(self, lane: Lane, batch: Batch) -> int:
        """Number and encode a batch that is sent now; return its size."""
        if self._identity is not None:
            self._identity.leave(lane, batch)
        terms, statistics = self._terms, self._statistics
        first = not batch.plain_bytes
        ratio = batch.encode(terms.codec, terms.level, self._transaction is not None)
        size = len(batch.buffer)
        if first:
            waited = batch.sent_at - batch.created_at
            statistics.queue_seconds += waited
            statistics.queue_seconds_max = max(statistics.queue_seconds_max, waited)
            statistics.bytes_plain += batch.plain_bytes
            statistics.bytes_compressed += size
            if terms.codec is not Codec.NONE:
                lane.road.observe(ratio)
            if batch.reserved > size:
                # It will not grow any more.
                spare, batch.reserved = batch.reserved - size, size
                self._accumulator.memory.give(spare)
        return size

    def _send(self, courier: Courier, batches: list[Batch], now: float) -> None:
        peer, statistics = courier.peer, self._statistics
        assert peer is not None
        assert peer.link is not None
        try:
            parcel = pack(batches, self._cluster, courier, self._terms, self._transaction, now)
            statistics.requests += 1
            statistics.batches_sent += len(batches)
            statistics.bytes_sent += sum(len(batch.buffer) for batch in batches)
            peer.used_at = now
            if not self._terms.acks:
                peer.link.tell(parcel.request, parcel.version)
                self._settlement.settle_all(batches, Answer(ErrorCode.NONE), now)
                return
            answered = partial(self._answered, courier, parcel)
            courier.in_flight.append(parcel)
            peer.link.ask(parcel.request, ProduceResponse, parcel.version, answered)
        except (Unsupported, ProtocolError) as error:
            if courier.in_flight and courier.in_flight[-1].batches is batches:
                courier.in_flight.pop()
            failure = Answer(ErrorCode.UNSUPPORTED_VERSION, error=Unsupported(str(error)))
            self._settlement.settle_all(batches, failure, now)

    def _await_room(self, courier: Courier) -> None:
        """Have a turn when the operating system takes more for a broker."""
        if courier.connecting is None:
            courier.connecting = self._start(self._drain(courier))

    async def _drain(self, courier: Courier) -> None:
        try:
            if courier.peer is not None and courier.peer.link is not None:
                await courier.peer.link.drain()
        finally:
            courier.connecting = None
            self.wake()

    # Answers

    def _answered(self, courier: Courier, parcel: Parcel, outcome: ProduceResponse | Exception) -> None:
        if self._closed:
            return
        now = self._clock()
        if parcel in courier.in_flight:
            courier.in_flight.remove(parcel)
        if isinstance(outcome, Exception):
            self._answers.lost(courier, parcel, outcome, now)
        else:
            took = now - parcel.at
            self._statistics.request_seconds += took
            self._statistics.request_seconds_max = max(self._statistics.request_seconds_max, took)
            self._answers.take(courier, parcel, outcome, now)
        self.wake()

    # Connections and metadata

    def _hang_up(self, courier: Courier) -> None:
        if courier.peer is not None and courier.peer.link is not None:
            courier.timed_out = True
            courier.peer.link.close(LinkLost("a produce request was not answered in time"))

    async def _connect(self, courier: Courier) -> None:
        try:
            courier.meet(await self._cluster.links.connected(courier.node))
        except Closed:
            return
        except ClientError:
            self._cluster.stale()
            await asyncio.sleep(self._terms.retry_backoff_s)
        finally:
            courier.connecting = None
            self.wake()

    async def _seek(self, topics: set[str]) -> None:
        """Ask for topics of which it is not known who leads them."""
        try:
            await self._cluster.refresh(topics)
            await asyncio.sleep(self._terms.retry_backoff_s)
        except ClientError as error:
            LOGGER.debug("metadata could not be had: %s", error)
            await asyncio.sleep(self._terms.retry_backoff_s)
        finally:
            self._seeking = None
            self.wake()

    def _learn(self) -> None:
        """Take in what the cluster has told."""
        now = self._clock()
        topics = self._cluster.topics
        for name, topic in topics.items():
            leaders = topic.leaders if topic.error is ErrorCode.NONE else {}
            self._accumulator.learn(name, leaders, now, topic.id)
        for name in [name for name in self._accumulator.roads if name not in topics]:
            self._accumulator.forget(name)
        for courier in self._couriers.values():
            courier.peer = None if courier.peer is not None and not courier.is_connected else courier.peer
        self.wake()

    # Waiting and ending

    async def flush(self) -> None:
        """Wait until everything that was sent before has ended."""
        assert self._loop is not None
        future: asyncio.Future[None] = self._loop.create_future()
        self._accumulator.pending.flush(lambda: None if future.done() else future.set_result(None))
        self.hurry()
        try:
            await future
        finally:
            self.relax()

    def hurry(self) -> None:
        """Have nothing linger until `relax`."""
        self._schedule.hurry(self._clock())
        self.wake()

    def relax(self) -> None:
        """Take back a `hurry`."""
        self._schedule.relax()

    def close(self) -> "list[asyncio.Task[None]]":
        """Have no more turns; return what is ending."""
        if self._loop is not None and not self._closed:
            self._cluster.unlisten(self._learn)
        self._closed = True
        for handle in (self._turn_due, self._alarm):
            if handle is not None:
                handle.cancel()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        return tasks

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return sum(len(courier.in_flight) for courier in self._couriers.values())

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
