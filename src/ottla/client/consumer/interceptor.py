"""Interceptors see records before the application, and the offsets of commits (KIP-42).

An error of an interceptor is logged, and the records are returned unchanged.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ottla.client.record import OffsetAndMetadata, Record, TopicPartition

LOGGER = logging.getLogger("ottla.client")


class ConsumerInterceptor(Protocol):
    """The methods of an interceptor of a consumer. Either may be missing."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """Return the records that `poll` returns instead of these, or the same records."""
        ...

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> object:
        """Called with the offsets of each commit."""
        ...


class ConsumerInterceptors:
    """The interceptors of one consumer, called in order."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        made = [each() if isinstance(each, type) else each for each in interceptors]
        self.on_consume = [each.on_consume for each in made if hasattr(each, "on_consume")]
        self._on_commit = [each.on_commit for each in made if hasattr(each, "on_commit")]
        self._close = [each.close for each in made if hasattr(each, "close")]

    def consume(self, records: list[Record]) -> list[Record]:
        """Return the records after all interceptors."""
        for call in self.on_consume:
            try:
                records = call(records)
            except Exception:
                LOGGER.exception("an interceptor failed in on_consume")
        return records

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Report committed offsets."""
        for call in self._on_commit:
            try:
                call(offsets)
            except Exception:
                LOGGER.exception("an interceptor failed in on_commit")

    def close(self) -> None:
        """Close the interceptors that have a `close` method."""
        for call in self._close:
            try:
                call()
            except Exception:
                LOGGER.exception("an interceptor failed to close")
