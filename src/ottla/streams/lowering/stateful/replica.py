"""The whole of a topic in memory, as a table: what a stream is joined with when it is joined with a global table.

Each of Spark's Python processes has one of each topic. It is read from the beginning when it is first asked for, and
brought up to the end of the topic before each use, so a micro-batch sees everything that had been committed when it
began.

R1  A row is the last value of its key within its partition; a null value deletes it.
R2  Values stay bytes until somebody looks them up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.blocking import Consumer
from ottla.client.record import Record, TopicPartition
from ottla.streams.errors import StreamsError, Unreadable
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.types.codec import plain_decoder
from ottla.streams.types.serde import Serde


@dataclass(frozen=True)
class Place:
    """Which topic, where, and how to read it."""

    topic: str
    bootstrap_servers: str
    settings: tuple[tuple[str, Any], ...]
    key_serde: Serde
    value_serde: Serde


class Rows:
    """Rows by key."""

    def __init__(self, topic: str, key_serde: Serde, value_serde: Serde) -> None:
        self._topic = topic
        self._encode = key_code(key_serde.type).encode
        self._keys = plain_decoder(key_serde)
        self._values = plain_decoder(value_serde)
        self._rows: dict[bytes, bytes] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Let records change rows."""
        for record in records:
            if record.key is None:
                continue
            at = self._encode(self._read(self._keys, record.key, record))
            if record.value is None:
                self._rows.pop(at, None)
            else:
                self._rows[at] = record.value

    def _read(self, decode: Callable[[bytes], Any], data: bytes, record: Record) -> Any:
        try:
            return decode(data)
        except Unreadable as error:
            raise Unreadable(
                f"the key of {record.topic}-{record.partition}@{record.offset} cannot be read: {error}"
            ) from None

    def find(self, key: Any) -> Any:
        """Return the value of a key, both plain, or None."""
        data = self._rows.get(self._encode(key))
        if data is None:
            return None
        try:
            return self._values(data)
        except Unreadable as error:
            raise Unreadable(f"the row {key!r} of {self._topic} cannot be read: {error}") from None

    def __len__(self) -> int:
        return len(self._rows)


class Replica:
    """Rows that follow a topic."""

    def __init__(self, place: Place) -> None:
        self.rows = Rows(place.topic, place.key_serde, place.value_serde)
        self._topic = place.topic
        settings = {"isolation.level": "read_committed", **dict(place.settings)}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        # Its methods are made from those of the consumer of asyncio.
        self._consumer: Any = Consumer(place.bootstrap_servers, settings)
        self._consumer.open()
        self._assigned: list[TopicPartition] = []

    def refresh(self) -> Rows:
        """Read up to the end of the topic, and return the rows."""
        consumer = self._consumer
        partitions = [TopicPartition(self._topic, n) for n in consumer.partitions_for(self._topic)]
        if not partitions:
            raise StreamsError(f"there is no topic {self._topic}", hint="make it, or mend its name")
        if partitions != self._assigned:
            places = {each: consumer.position(each) for each in self._assigned}
            consumer.assign(partitions)
            for each in partitions:
                if each in places:
                    consumer.seek(each, places[each])
                else:
                    consumer.seek_to_beginning([each])
            self._assigned = partitions
        ends: Mapping[TopicPartition, int] = consumer.end_offsets(partitions)
        while any(consumer.position(each) < end for each, end in ends.items()):
            self.rows.take(consumer.poll(500, 10_000))
        return self.rows

    def close(self) -> None:
        """Hang up."""
        self._consumer.close()


_replicas: dict[Place, Replica] = {}


def rows_of(place: Place) -> Rows:
    """Return the rows of a topic as they are now, from this process's own replica."""
    replica = _replicas.get(place)
    if replica is None:
        replica = _replicas[place] = Replica(place)
    try:
        return replica.refresh()
    except BaseException:
        # Whoever asks next begins anew: what was read may be half of something.
        del _replicas[place]
        replica.close()
        raise
