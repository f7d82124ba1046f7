"""Bytes of a topic become a record, or a dead letter."""

from collections.abc import Callable
from typing import Any

from ottla.client.record import Record
from ottla.streams.errors import FunctionFailed, StreamsError, Unreadable
from ottla.streams.plan.sources import GlobalTableSource, Source
from ottla.streams.record_fields import timestamp_ms
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.types.codec import plain_decoder

# The headers of Kafka Streams' own dead letters.
_HEADER = "__streams.errors."
_EXCEPTION = f"{Unreadable.__module__}.{Unreadable.__qualname__}"

Decode = Callable[[bytes], Any]


class Reader:
    """Reads the records of a source."""

    def __init__(self, node: Source, dead_letters: str | None) -> None:
        self.node = node
        self._halves = (("key", plain_decoder(node.key_serde)), ("value", plain_decoder(node.value_serde)))
        self._dead_letters = dead_letters
        self._timestamp = (
            None
            if node.timestamp is None
            else Called(node.timestamp, node.name, key=node.key, value=node.value)
        )

    def read(self, record: Record) -> Change | Record:
        """Return a record that can be read as a change, or another as it goes to the dead letters."""
        found: list[Any] = []
        for (half, decode), data in zip(self._halves, (record.key, record.value), strict=True):
            try:
                found.append(None if data is None else decode(data))
            except Unreadable as error:
                return self._letter(record, f"{half}: {error.args[0]}")
        place = (record.topic, record.partition, record.offset)
        change = Change(found[0], found[1], record.timestamp, headers=tuple(record.headers), place=place)
        if self._timestamp is None:
            return change
        try:
            said = self._timestamp.raw(change.key, change.value)
            return change._replace(timestamp=timestamp_ms(said, self.node.name, self._timestamp.place))
        except FunctionFailed as failed:
            raise failed.located(*place) from failed.__cause__

    def _letter(self, record: Record, reason: str) -> Record:
        if self._dead_letters is None:
            where = f"{record.topic}-{record.partition}@{record.offset}"
            raise Unreadable(
                f"{self.node.name}: the record {where} cannot be read: {reason}",
                hint="mend it or the type it is read as; with dead_letters=TOPIC the app puts such records aside",
            )
        told = {
            "exception": _EXCEPTION,
            "message": reason,
            "stacktrace": "",
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
        }
        headers = tuple((_HEADER + name, text.encode()) for name, text in told.items())
        return Record(
            self._dead_letters,
            -1,
            -1,
            record.timestamp,
            record.key,
            record.value,
            (*record.headers, *headers),
        )


class GlobalTable(Operator):
    """The rows of a topic, looked up by any key. Values stay bytes until somebody looks them up."""

    def __init__(self, node: GlobalTableSource) -> None:
        self._node = node
        self._decode_key, self._decode_value = plain_decoder(node.key_serde), plain_decoder(node.value_serde)
        self._rows: dict[bytes, bytes] = {}

    def follow(self, record: Record) -> None:
        """Let a record change its row."""
        if record.key is None:
            return
        try:
            at = key_bytes(self._node.key, self._decode_key(record.key))
        except Unreadable as error:
            where = f"{record.topic}-{record.partition}@{record.offset}"
            raise Unreadable(f"the key of {where} cannot be read: {error}") from None
        if record.value is None:
            self._rows.pop(at, None)
        else:
            self._rows[at] = record.value

    def find(self, key: Any) -> Any:
        """Return the plain value of a plain key, or None."""
        data = self._rows.get(key_bytes(self._node.key, key))
        if data is None:
            return None
        try:
            return self._decode_value(data)
        except Unreadable as error:
            topics = ", ".join(self._node.topics)
            raise StreamsError(f"the row {key!r} of {topics} cannot be read: {error}") from None
