"""What `send` returns: a claim on the outcome of one record.

D1  It is a tuple of batch, place and time, made for every record and kept by nobody but the caller. Whatever waiting
    needs is made when somebody waits.
D2  Giving up waiting changes nothing about the record.
D3  Every delivery ends: by the broker's answer, by `delivery.timeout.ms`, or when the producer is closed.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError, WrongState
from ottla.client.record import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.producer.batch import Batch

LOGGER = logging.getLogger("ottla.client")
NO_OFFSET = -1

Done = Callable[[RecordMetadata, ClientError | None], object]


class Delivery(tuple[Any, ...]):
    """Await it for the record's RecordMetadata, or for the error that kept it from being written."""

    __slots__ = ()

    def _place(self) -> "tuple[Batch, int]":
        return self[0].find(self[1])  # type: ignore[no-any-return]

    @property
    def topic(self) -> str:
        """Where the record goes."""
        return self[0].lane.topic  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        """Which partition it goes to."""
        return self[0].lane.partition  # type: ignore[no-any-return]

    @property
    def timestamp(self) -> int:
        """The time that the record was given, in milliseconds."""
        return self[2]  # type: ignore[no-any-return]

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._place()[0].done

    def exception(self) -> ClientError | None:
        """Return why the record was not written, or None when it was; WrongState while that is not known."""
        batch, place = self._place()
        if not batch.done:
            raise WrongState("the record is still under way", hint="await the delivery")
        return batch.error_of(place)

    def metadata(self) -> RecordMetadata:
        """Return what is known of where the record is; the offset is -1 as long as it has none."""
        batch, place = self._place()
        offset = NO_OFFSET if batch.base_offset < 0 else batch.base_offset + place
        time = self[2] if batch.append_time < 0 else batch.append_time
        return RecordMetadata(batch.lane.topic, batch.lane.partition, offset, time)

    def result(self) -> RecordMetadata:
        """Return where the record is, or raise why it is not; WrongState while that is not known."""
        error = self.exception()
        if error is not None:
            # Many may raise the same error, and none is to hold the others' frames.
            raise error.with_traceback(None)
        return self.metadata()

    def when_done(self, call: Done) -> None:
        """Have `call(metadata, error)` called once the outcome is known; `error` is None when all is well."""
        batch, place = self._place()
        if batch.done:
            self._tell(call)
        else:
            batch.watch(place, partial(self._tell, call))

    def _tell(self, call: Done) -> None:
        try:
            call(self.metadata(), self.exception())
        except Exception:
            # Other people's records wait behind it.
            LOGGER.exception("a delivery callback failed")

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, place = self._place()
        if not batch.done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            batch.watch(place, partial(_release, future))
            yield from future
        return self.result()

    def __repr__(self) -> str:
        batch, place = self._place()
        state = "under way" if not batch.done else batch.error_of(place) or f"at {self.metadata().offset}"
        return f"<Delivery {self.topic}-{self.partition} {state}>"


def _release(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
