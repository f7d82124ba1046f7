"""Interceptors see every record before it is sent, and its outcome (KIP-42).

An error of an interceptor is logged, and the record is sent unchanged.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ottla.client.duration import Time
from ottla.client.errors import ClientError
from ottla.client.record import RecordMetadata

LOGGER = logging.getLogger("ottla.client")


class Outgoing(NamedTuple):
    """A record before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: Time | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class ProducerInterceptor(Protocol):
    """The methods of an interceptor of a producer. Either may be missing."""

    def on_send(self, record: Outgoing) -> Outgoing:
        """Return the record to send instead of this one, or the same record."""
        ...

    def on_acknowledgement(self, metadata: RecordMetadata, error: ClientError | None) -> object:
        """Called with the outcome of each record. If there is an error, the offset is -1."""
        ...


class ProducerInterceptors:
    """The interceptors of one producer, called in order."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        made = [each() if isinstance(each, type) else each for each in interceptors]
        self._on_send = [each.on_send for each in made if hasattr(each, "on_send")]
        self._on_acknowledgement = [
            each.on_acknowledgement for each in made if hasattr(each, "on_acknowledgement")
        ]
        self._close = [each.close for each in made if hasattr(each, "close")]

    def send(self, record: Outgoing) -> Outgoing:
        """Return the record to send after all interceptors."""
        for call in self._on_send:
            try:
                record = call(record)
            except Exception:
                LOGGER.exception("an interceptor failed before sending")
        return record

    def acknowledge(self, metadata: RecordMetadata, error: ClientError | None) -> None:
        """Report the outcome of a record."""
        for call in self._on_acknowledgement:
            try:
                call(metadata, error)
            except Exception:
                LOGGER.exception("an interceptor failed after sending")

    def close(self) -> None:
        """Close the interceptors that have a `close` method."""
        for call in self._close:
            try:
                call()
            except Exception:
                LOGGER.exception("an interceptor failed to close")
