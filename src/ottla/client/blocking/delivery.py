"""What a blocking `send` returns: the result of one record, which is known later."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.client.deprecation import deprecated, renamed_parameter
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, SerializationFailed, WrongState
from ottla.client.producer.delivery import Delivery as AsyncDelivery
from ottla.client.producer.delivery import DeliveryCallback
from ottla.client.record import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer

LOGGER = logging.getLogger("ottla.client")


class Delivery:
    """The result of one `send`, which is known later."""

    __slots__ = ("_error", "_inner", "_producer", "_record")

    def __init__(self, producer: "Producer", record: tuple[Any, ...]) -> None:
        self._producer = producer
        self._record: tuple[Any, ...] | None = record
        self._inner: AsyncDelivery | None = None
        self._error: ClientError | None = None

    def done(self) -> bool:
        """Return whether the outcome is known."""
        return self._error is not None or (self._inner is not None and self._inner.done())

    def exception(self) -> ClientError | None:
        """Return why the record was not written, or None if it was written. Raises WrongState while this is unknown."""
        if self._error is not None:
            self._record = None  # the application has seen the error
            return self._error
        if self._inner is None:
            raise WrongState("the record is still under way", hint="wait for result()")
        return self._inner.exception()

    @renamed_parameter("timeout_s", "timeout")
    def result(self, timeout: Duration | None = None) -> RecordMetadata:
        """Wait until the record is written, and return where it was stored, or raise why it was not written.

        Raises the built-in TimeoutError after the timeout.
        """
        if not self.done():
            self._producer._run(self._wait(None if timeout is None else seconds(timeout)))
        if self._error is not None:
            self._record = None  # the application has seen the error
            raise self._error
        assert self._inner is not None
        return self._inner.result()

    def add_done_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Call `callback(delivery)` in the thread of the client when the outcome is known, or soon if it is.

        The callback must not wait. Its errors are logged.
        """
        self._producer._thread.call(self._watch, callback)

    @deprecated(
        "Delivery.when_done is deprecated: use Delivery.add_done_callback, which calls with the delivery"
    )
    def when_done(self, call: DeliveryCallback) -> None:
        """Call `call(metadata, error)` when the outcome is known; `error` is None if the record was written."""

        def callback(delivery: Delivery) -> None:
            error = delivery.exception()
            if delivery._inner is not None:
                call(delivery._inner.metadata(), error)
            else:
                call(RecordMetadata(topic, -1 if partition is None else partition, -1, -1), error)

        topic, _, _, partition, *_ = self._record or ("", None, None, None)
        self.add_done_callback(callback)

    def _watch(self, callback: Callable[["Delivery"], object]) -> None:
        self._producer._drain()
        if self._inner is not None:
            self._inner.add_done_callback(lambda _: self._call_back(callback))
        elif self._error is not None:
            self._call_back(callback)
        else:
            self._producer._late.append((self, callback))

    def _call_back(self, callback: Callable[["Delivery"], object]) -> None:
        try:
            callback(self)
        except Exception:
            LOGGER.exception("a delivery callback failed")

    async def _wait(self, timeout_s: float | None) -> None:
        async with asyncio.timeout(timeout_s):
            await self._producer._drained()
            if self._inner is not None:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._inner.add_done_callback(lambda _: None if future.done() else future.set_result(None))
                await future


class _Refused(Delivery):
    """The delivery of a record that was never taken."""

    __slots__ = ()

    def __del__(self) -> None:
        if self._record is not None:
            LOGGER.warning("a record for %.100r was not taken: %s", self._record[0], self._error)


def refuse(delivery: Delivery, error: Exception) -> None:
    """Note why a record was not taken."""
    if not isinstance(error, ClientError):
        error = SerializationFailed(f"the record could not be taken: {error!r}")
    delivery._error = error
    delivery.__class__ = _Refused
