"""What `send` returns: the result of one record, which is known later.

D1  It is a tuple of batch, index and timestamp. Only the caller keeps it. What waiting needs is made by the first wait.
D2  Cancelling a wait does not affect the record.
D3  Every delivery ends: by the broker's response, by `delivery.timeout.ms`, or when the producer is closed.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.client.deprecation import deprecated
from ottla.client.errors import ClientError, WrongState
from ottla.client.record import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.producer.batch import ProducerBatch

LOGGER = logging.getLogger("ottla.client")
NO_OFFSET = -1

DeliveryCallback: TypeAlias = Callable[[RecordMetadata, ClientError | None], object]
"""A callback with the outcome of a record; the error is None when the record was written."""


class Delivery(tuple[Any, ...]):
    """The result of one `send`. Awaiting it returns the RecordMetadata, or raises why the record was not written."""

    __slots__ = ()

    def _place(self) -> "tuple[ProducerBatch, int]":
        return self[0].find(self[1])  # type: ignore[no-any-return]

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return self[0].queue.topic  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        """The partition of the record."""
        return self[0].queue.partition  # type: ignore[no-any-return]

    @property
    def timestamp(self) -> int:
        """The timestamp of the record, in milliseconds since 1970."""
        return self[2]  # type: ignore[no-any-return]

    def done(self) -> bool:
        """Return whether the outcome is known."""
        return self._place()[0].done

    def exception(self) -> ClientError | None:
        """Return why the record was not written, or None if it was written. Raises WrongState while this is unknown."""
        batch, index = self._place()
        if not batch.done:
            raise WrongState("the record is still under way", hint="await the delivery")
        return batch.error_of(index)

    def metadata(self) -> RecordMetadata:
        """Return where the record is stored, as far as it is known; the offset is -1 until the broker has confirmed."""
        batch, index = self._place()
        offset = NO_OFFSET if batch.base_offset < 0 else batch.base_offset + index
        time = self[2] if batch.append_time < 0 else batch.append_time
        return RecordMetadata(batch.queue.topic, batch.queue.partition, offset, time)

    def result(self) -> RecordMetadata:
        """Return where the record was stored, or raise why it was not. Raises WrongState while this is unknown."""
        error = self.exception()
        if error is not None:
            # Several records may raise the same error, which must not keep their frames alive.
            raise error.with_traceback(None)
        return self.metadata()

    def add_done_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Call `callback(delivery)` when the outcome is known, or now if it is. Its errors are logged."""
        batch, index = self._place()
        call = partial(_call_back, callback, self)
        if batch.done:
            call()
        else:
            batch.on_done(index, call)

    @deprecated(
        "Delivery.when_done is deprecated: use Delivery.add_done_callback, which calls with the delivery"
    )
    def when_done(self, call: DeliveryCallback) -> None:
        """Call `call(metadata, error)` when the outcome is known; `error` is None if the record was written."""
        self.add_done_callback(lambda delivery: call(delivery.metadata(), delivery.exception()))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._place()
        if not batch.done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            batch.on_done(index, partial(_release, future))
            yield from future
        return self.result()

    def __repr__(self) -> str:
        batch, index = self._place()
        state = "under way" if not batch.done else batch.error_of(index) or f"at {self.metadata().offset}"
        return f"<Delivery {self.topic}-{self.partition} {state}>"


def _call_back(callback: Callable[[Delivery], object], delivery: Delivery) -> None:
    try:
        callback(delivery)
    except Exception:
        # Other callbacks wait behind this one.
        LOGGER.exception("a delivery callback failed")


def _release(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
