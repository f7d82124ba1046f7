"""The producer without asyncio.

Q1  `send` hands a record over and returns; the loop takes what has come in one go. A call across threads for every
    record would take thirty times as long.
Q2  Records of one thread are taken in the order they were sent in; commits and flushes come behind all of them.
Q3  When there is no room, the gate is shut, and whoever sends waits up to `max.block.ms`.
Q4  What is wrong with a record is raised by `send` where that can be seen at once. What is found later comes out of its
    Delivery; if nobody asks that, it is logged.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from ottla.client.blocking.face import Face
from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    MustAbort,
    SerializationFailed,
    TopicUnknown,
    WrongState,
)
from ottla.client.producer.accumulator import plain
from ottla.client.producer.delivery import LOGGER, Done
from ottla.client.producer.delivery import Delivery as AsyncDelivery
from ottla.client.producer.producer import Producer as AsyncProducer
from ottla.client.record import RecordMetadata
from ottla.world.loop_thread import Gate

_HANDED_OVER_MAX = 20_000
_AT_ONCE = 1_000


class Delivery:
    """A claim on the outcome of one record."""

    __slots__ = ("_error", "_inner", "_producer", "_record")

    def __init__(self, producer: "Producer", record: tuple[Any, ...]) -> None:
        self._producer = producer
        self._record: tuple[Any, ...] | None = record
        self._inner: AsyncDelivery | None = None
        self._error: ClientError | None = None

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._error is not None or (self._inner is not None and self._inner.done())

    def exception(self) -> ClientError | None:
        """Return why the record was not written, or None when it was; WrongState while that is not known."""
        if self._error is not None:
            self._record = None  # somebody has asked
            return self._error
        if self._inner is None:
            raise WrongState("the record is still under way", hint="wait for result()")
        return self._inner.exception()

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for where the record has gone, or raise why it was not written; TimeoutError when the time is up."""
        if not self.done():
            self._producer._run(self._wait(timeout_s))
        if self._error is not None:
            self._record = None  # somebody has asked
            raise self._error
        assert self._inner is not None
        return self._inner.result()

    def when_done(self, call: Done) -> None:
        """Have `call(metadata, error)` called in the client's thread once the outcome is known; it must not wait."""
        self._producer._thread.call(self._watch, call)

    def _watch(self, call: Done) -> None:
        self._producer._drain()
        if self._inner is not None:
            self._inner.when_done(call)
        elif self._error is not None:
            topic, _, _, partition, *_ = self._record or ("", None, None, None)
            self._record = None  # somebody has asked
            call(RecordMetadata(topic, -1 if partition is None else partition, -1, -1), self._error)
        else:
            self._producer._late.append((self, call))

    async def _wait(self, timeout_s: float | None) -> None:
        async with asyncio.timeout(timeout_s):
            await self._producer._drained()
            if self._inner is not None:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._inner.when_done(lambda *_: None if future.done() else future.set_result(None))
                await future


class _Refused(Delivery):
    """The delivery of a record that was never taken."""

    __slots__ = ()

    def __del__(self) -> None:
        if self._record is not None:
            LOGGER.warning("a record for %.100r was not taken: %s", self._record[0], self._error)


class Producer(Face, kind=AsyncProducer):
    """Sends records. `send` returns at once unless there is no room; errors of a record come out of its Delivery."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._queue: deque[Delivery] = deque()
        self._late: list[tuple[Delivery, Done]] = []
        self._gate = Gate()
        self._draining = False
        self._patience: asyncio.Task[None] | None = None
        self._is_in_use = False
        super().__init__(*arguments, **keywords)
        self._is_plain = self._client._preparation is None
        self._block_s: float = self._client._terms.block_s

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = (),
    ) -> Delivery:
        """Take a record. BufferFull when there is no room for it within `max.block.ms`.

        SerializationFailed for what can be no record, WrongState before `open` and Closed after `close`.
        """
        if self._is_plain:
            if value.__class__ is not bytes and value is not None:
                plain(value, "value")
            if key.__class__ is not bytes and key is not None:
                plain(key, "key")
        if topic.__class__ is not str:
            raise SerializationFailed(f"{topic!r:.100} is no name of a topic", hint="a name is a text")
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

    def open(self) -> Self:
        """Reach a broker, which `with` does too."""
        super().open()
        self._is_in_use = True
        return self

    def _refuse(self) -> None:
        if self._is_borrowed:
            raise WrongState("the producer is not open", hint="use it in a `with` block, or call open() first")
        raise Closed("the producer is closed", hint="make another")

    def send_nowait(self, *record: Any, **named: Any) -> Delivery:
        """Take a record if there is room for it now, else BufferFull."""
        if not self._gate.is_open:
            raise BufferFull("there is no room for another record")
        return self.send(*record, **named)

    def deliver(self, *record: Any, **named: Any) -> RecordMetadata:
        """Send a record and wait until it is written; raises what its Delivery raises."""
        return self.send(*record, **named).result()

    def flush(self) -> None:
        """Have everything leave at once that was sent before, and wait until the outcome of all of it is known."""
        self._behind("flush")

    def commit_transaction(self) -> None:
        """Send what was taken, and have all of the transaction count."""
        self._behind("commit_transaction")

    def abort_transaction(self) -> None:
        """Have nothing of the transaction count."""
        self._behind("abort_transaction")

    def close(self, timeout_ms: float | None = None) -> None:
        """Send what was taken, wait for the answers, and hang up."""
        self._is_in_use = False
        if self._is_borrowed:
            try:
                self._behind("close", timeout_ms)
            finally:
                self._give_back()

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Open a transaction that is committed at the end of the block, and aborted when an error leaves it."""
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

    def _abort_quietly(self) -> None:
        try:
            self.abort_transaction()
        except ClientError as error:
            LOGGER.warning("the transaction could not be aborted: %s", error)

    def _behind(self, name: str, *arguments: Any) -> None:
        async def work() -> None:
            await self._drained()
            await getattr(self._client, name)(*arguments)

        self._run(work())

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
        if self._patience is not None:
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
                self._patience = asyncio.get_running_loop().create_task(self._wait_with(delivery))
                return
            except Exception as error:  # noqa: BLE001  # others wait behind it
                _fail(delivery, error)
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
            for delivery, call in late:
                delivery._watch(call)

    async def _wait_with(self, delivery: Delivery) -> None:
        assert delivery._record is not None
        try:
            delivery._inner = await self._client.send(*delivery._record)
            delivery._record = None
        except Exception as error:  # noqa: BLE001  # others wait behind it
            _fail(delivery, error)
        finally:
            self._patience = None
        self._queue.popleft()
        self._drain()

    async def _drained(self) -> None:
        """Wait until everything that was handed over before is with the producer."""
        last = self._queue[-1] if self._queue else None
        while last is not None and last._inner is None and last._error is None:
            self._drain()
            if self._patience is not None:
                await asyncio.wait([self._patience])
            else:
                await asyncio.sleep(0)


def _fail(delivery: Delivery, error: Exception) -> None:
    if not isinstance(error, ClientError):
        error = SerializationFailed(f"the record could not be taken: {error!r}")
    delivery._error = error
    delivery.__class__ = _Refused
