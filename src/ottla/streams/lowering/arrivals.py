"""What arrives at the ends of ways, gathered: rows that leave the topology, and records for the inputs of stages.

    row     output, topic, partition, key, value, headers, timestamp, seen_<n>…    (`seen_<n>` for end n, if it is a
            function of this program: the record itself)
    record  the envelope, of as many columns as the stage asks for

A1  Where records pass a stage by (`is_placed`) each has its place with it: the record of a topic that it comes from,
    and the path that it took from there. Sorted by it, rows leave in the order in which Kafka Streams writes them.
A2  A path says at each origin how many-th arrival it was, and first how often it went through a topic of Kafka
    Streams' own between sub-topologies: what does so comes after all that the record did before.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.streams.types.type import Type

if TYPE_CHECKING:
    import pyarrow as pa

LEAVES = 0
TAIL = ("timestamp", "headers", "topic", "partition", "offset")
ROOT = ("root_topic", "root_partition", "root_offset", "root_timestamp", "path")
ROW = ("output", "topic", "partition", "key", "value", "headers", "timestamp")
_NUMBER = struct.Struct(">I")


Put = Callable[[tuple[Any, ...]], None]
# (key, value, old, put)
Way = Callable[[Any, Any, Any, Put], None]


class Ways:
    """The ways from one origin, as functions (`fan.py`)."""

    def __init__(self, follow: Way, begins: tuple[Callable[[], None], ...] = ()) -> None:
        self.follow = follow
        self._begins = begins

    def begin(self) -> None:
        """Get ready for a micro-batch: what is looked up may have changed since the last one."""
        for each in self._begins:
            each()


class Place(NamedTuple):
    """Where a record comes from: one of a topic, and a path from there."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    path: bytes = b"\0"

    def further(self, *numbers: int) -> "Place":
        """Return the place of an arrival behind this one."""
        return self._replace(path=self.path + b"".join(map(_NUMBER.pack, numbers)))

    def through_topic(self) -> "Place":
        """Return the same behind a topic between sub-topologies."""
        return self._replace(path=bytes((min(self.path[0] + 1, 255),)) + self.path[1:])


class Departing(NamedTuple):
    """A record at its origin, about to go on its ways."""

    key: Any
    value: Any
    old: Any
    timestamp: int
    headers: Any
    topic: str | None
    partition: int | None
    offset: int | None
    place: Place | None = None


@dataclass(frozen=True)
class Gates:
    """What is on the other side of ways: the schemas of rows and of records, as Arrow writes them.

    `entrances` are by the number of an input: the schema, and the type of the keys by which records are divided.
    """

    rows: bytes
    seen: tuple[int, ...]  # the ends that are functions of this program
    entrances: Mapping[int, tuple[bytes, Type]]
    partitions: int
    is_placed: bool

    def schema(self, to: int) -> bytes:
        """Return the schema of what arrives there."""
        return self.rows if to == LEAVES else self.entrances[to][0]

    def names(self, to: int) -> tuple[str, ...]:
        """Return what is gathered there, in its order."""
        root = ROOT if self.is_placed else ()
        if to == LEAVES:
            return (*ROW, *(f"seen_{n}" for n in self.seen), *root)
        return ("key", "value", "old", *TAIL, *root)


class Arrivals:
    """Arrivals of some records, in their order."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._found: dict[int, list[tuple[Any, ...]]] = {}

    def take(self, record: Departing, arrived: Sequence[tuple[Any, ...]]) -> None:
        """Take what a record has become."""
        for number, arrival in enumerate(arrived):
            to = arrival[0]
            place: tuple[Any, ...] = ()
            if record.place is not None:
                found = record.place.further(number)
                place = found.through_topic() if to < 0 else found
            made = self._row(record, arrival) if to == LEAVES else (*arrival[1:], *record[3:8])
            self._found.setdefault(abs(to), []).append((*made, *place))

    def _row(self, record: Departing, arrival: tuple[Any, ...]) -> tuple[Any, ...]:
        _, output, topic, partition, key, value, seen, *headers = arrival
        return (
            *(output, topic, partition, key, value),
            *(headers[0] if headers else record.headers, record.timestamp),
            *((*seen, *record[3:8]) if number == output else None for number in self._gates.seen),
        )

    def tables(self) -> Iterator[tuple[int, "pa.Table"]]:
        """Yield what has arrived, by where: LEAVES, or the number of an input."""
        import pyarrow as pa

        for to, found in self._found.items():
            schema = pa.ipc.read_schema(pa.py_buffer(self._gates.schema(to)))
            columns = dict(zip(self._gates.names(to), zip(*found, strict=True), strict=True))
            yield (
                to,
                pa.Table.from_arrays(
                    [pa.array(columns[each.name], each.type) for each in schema], schema=schema
                ),
            )
        self._found = {}


def follow(ways: Ways, records: Iterable[Departing], arrivals: Arrivals) -> None:
    """Let records go their ways, and gather what arrives."""
    from ottla.streams.errors import FunctionFailed

    way = ways.follow
    for record in records:
        arrived: list[tuple[Any, ...]] = []
        try:
            way(record.key, record.value, record.old, arrived.append)
        except FunctionFailed as failed:
            raise failed.located(record.topic, record.partition, record.offset) from failed.__cause__
        if arrived:
            arrivals.take(record, arrived)
