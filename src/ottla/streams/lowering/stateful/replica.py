"""The whole of a topic in memory, as a table: what a stream is joined with when it is joined with a global table.

Each of Spark's Python processes has one of each topic. It is read from the beginning when it is first asked for, and
brought up to the end of the topic before each use, so a micro-batch sees everything that had been committed when it
began.

R1  A row is the last value of its key within its partition; a null value deletes it.
R2  Values stay bytes until somebody looks them up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.blocking import Admin, Consumer
from ottla.client.record import Record, TopicPartition
from ottla.client.settings.admin import ADMIN
from ottla.streams.errors import StreamsError, Unreadable
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.types.codec import plain_decoder
from ottla.streams.types.serde import Serde

_WAITS = "default.api.timeout.ms"
_POLL_SECONDS = 0.5
# A minute, as long as clients wait for anything.
_IDLE_POLLS_MAX = 120


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


class Reader:
    """A topic of a cluster, as a replica reads it."""

    def __init__(self, place: Place) -> None:
        self._topic = place.topic
        given = dict(place.settings)
        settings = {"isolation.level": "read_committed", **given}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        # Their methods are made from those of the clients of asyncio.
        self._consumer = Consumer(place.bootstrap_servers, settings)
        # How long it waits is not for the consumer's settings to say, which are checked against others there.
        asked = {name: value for name, value in given.items() if name in ADMIN and name != _WAITS}
        self._admin: Any = Admin(place.bootstrap_servers, asked)
        self._consumer.open()
        self._admin.open()

    def look(self) -> tuple[str, list[TopicPartition]]:
        """Return the id of the topic and its partitions, as the cluster has them now."""
        # Which has it made, where that is allowed; what the consumer knows of it may be old.
        self._consumer.partitions_for(self._topic)
        found = self._admin.topics.describe([self._topic])[self._topic]
        return found.id, [TopicPartition(self._topic, each.partition) for each in found.partitions]

    def assign(self, places: Mapping[TopicPartition, int | None]) -> None:
        """Read these partitions: on from an offset, or from the beginning."""
        self._consumer.assign(list(places))
        for partition, offset in places.items():
            if offset is None:
                self._consumer.seek_to_beginning([partition])
            else:
                self._consumer.seek(partition, offset)

    def reached(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where each partition is read next."""
        return {each: self._consumer.position(each) for each in partitions}

    def ends(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return where each partition ends."""
        return self._consumer.end_offsets(partitions)

    def poll(self) -> Sequence[Record]:
        """Return the next records, and none if none come for a while."""
        return self._consumer.poll(timeout=_POLL_SECONDS, max_records=10_000)

    def close(self) -> None:
        """Hang up."""
        self._consumer.close()
        self._admin.close()


class Replica:
    """Rows that follow a topic.

    R3  A topic that was made anew, or that has lost records at its end, is read from its beginning into no rows.
    R4  Reading ends: where nothing comes for `_IDLE_POLLS_MAX` polls though the topic goes on, that is an error.
    """

    def __init__(self, place: Place, reader: Reader | None = None) -> None:
        self._place = place
        self._reader = Reader(place) if reader is None else reader
        self._begin("")

    def _begin(self, topic_id: str) -> None:
        self.rows = Rows(self._place.topic, self._place.key_serde, self._place.value_serde)
        self._id = topic_id
        self._assigned: list[TopicPartition] = []

    def refresh(self) -> Rows:
        """Read up to the end of the topic, and return the rows."""
        for _ in range(_IDLE_POLLS_MAX):
            if self._read(self._partitions()):
                return self.rows
        raise StreamsError(
            f"{self._place.topic} cannot be read to its end: nothing comes from it",
            hint="look whether its leaders are there, and for a transaction that was left open",
        )

    def _partitions(self) -> list[TopicPartition]:
        """Look which partitions there are, and read those that are new from their beginning."""
        reader = self._reader
        topic_id, partitions = reader.look()
        if not partitions:
            raise StreamsError(f"there is no topic {self._place.topic}", hint="make it, or mend its name")
        if topic_id != self._id:
            self._begin(topic_id)
        if partitions != self._assigned:
            known = reader.reached([each for each in self._assigned if each in partitions])
            reader.assign({each: known.get(each) for each in partitions})
            self._assigned = partitions
        return partitions

    def _read(self, partitions: list[TopicPartition]) -> bool:
        """Read up to the ends as they are now; return whether that went without a stop."""
        reader = self._reader
        ends, reached = reader.ends(partitions), reader.reached(partitions)
        if any(reached[each] > end for each, end in ends.items()):
            # What the rows were made of is not what the topic has.
            self._begin(self._id)
            return False
        while any(reached[each] < end for each, end in ends.items()):
            self.rows.take(reader.poll())
            before, reached = reached, reader.reached(partitions)
            if reached == before:
                return False
        return True

    def close(self) -> None:
        """Hang up."""
        self._reader.close()


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
