"""What comes out at the ends of paths, gathered: rows that leave the topology, and records for the inputs of stages.

    row     output, topic, partition, key, value, headers, timestamp, seen_<n>…    (`seen_<n>` for end n, if it is a
            function of this program: the record itself)
    record  the envelope, of as many columns as the stage asks for

M1  Where records pass a stage by, each has its lineage with it: the record of a topic that it comes from, and the path
    that it took from there. Sorted by it, rows leave in the order in which Kafka Streams writes them.
M2  The path of a lineage says at each origin how many-th emission it was, and first of all how often it went through a
    topic of Kafka Streams' own between sub-topologies: what does so comes after all that the record did before.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.streams.types.type import Type

if TYPE_CHECKING:
    import pyarrow as pa

# Where a row goes, beside the numbers of stage inputs.
TO_OUTPUT = 0
TAIL = ("timestamp", "headers", "topic", "partition", "offset")
ROOT = ("root_topic", "root_partition", "root_offset", "root_timestamp", "path")
ROW = ("output", "topic", "partition", "key", "value", "headers", "timestamp")
_NUMBER = struct.Struct(">I")

Emit = Callable[[tuple[Any, ...]], None]
# (key, value, old, emit)
Path = Callable[[Any, Any, Any, Emit], None]


class Paths:
    """The paths from one origin, as functions (`fan_out.py`)."""

    def __init__(self, follow: Path, begins: tuple[Callable[[], None], ...] = ()) -> None:
        self.follow = follow
        self._begins = begins

    def begin(self) -> None:
        """Get ready for a micro-batch: what is looked up may have changed since the last one."""
        for each in self._begins:
            each()


class Lineage(NamedTuple):
    """Where a record comes from: one of a topic, and a path from there."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    path: bytes = b"\0"

    def further(self, *numbers: int) -> "Lineage":
        """Return the lineage of an emission of this record."""
        return self._replace(path=self.path + b"".join(map(_NUMBER.pack, numbers)))

    def through_topic(self) -> "Lineage":
        """Return the same behind a topic between sub-topologies."""
        return self._replace(path=bytes((min(self.path[0] + 1, 255),)) + self.path[1:])


class OriginRecord(NamedTuple):
    """A record at its origin, about to go on its paths."""

    key: Any
    value: Any
    old: Any
    timestamp: int
    headers: Any
    topic: str | None
    partition: int | None
    offset: int | None
    lineage: Lineage | None = None


@dataclass(frozen=True)
class Layout:
    """What rows and records look like: their schemas, as Arrow writes them.

    `inputs` are by the number of a stage input: the schema, and the type of the keys by which records are divided.
    """

    rows: bytes
    seen: tuple[int, ...]  # the ends that are functions of this program
    inputs: Mapping[int, tuple[bytes, Type]]
    partitions: int
    has_lineage: bool

    def schema(self, to: int) -> bytes:
        """Return the schema of what goes there."""
        return self.rows if to == TO_OUTPUT else self.inputs[to][0]

    def names(self, to: int) -> tuple[str, ...]:
        """Return what is gathered there, in its order."""
        root = ROOT if self.has_lineage else ()
        if to == TO_OUTPUT:
            return (*ROW, *(f"seen_{n}" for n in self.seen), *root)
        return ("key", "value", "old", *TAIL, *root)


class Emissions:
    """Emissions of some records, in their order."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._found: dict[int, list[tuple[Any, ...]]] = {}

    def take(self, record: OriginRecord, emitted: Sequence[tuple[Any, ...]]) -> None:
        """Take what a record has become."""
        for number, emission in enumerate(emitted):
            to = emission[0]
            place: tuple[Any, ...] = ()
            if record.lineage is not None:
                found = record.lineage.further(number)
                place = found.through_topic() if to < 0 else found
            made = self._row(record, emission) if to == TO_OUTPUT else (*emission[1:], *record[3:8])
            self._found.setdefault(abs(to), []).append((*made, *place))

    def _row(self, record: OriginRecord, emission: tuple[Any, ...]) -> tuple[Any, ...]:
        _, output, topic, partition, key, value, seen, *headers = emission
        return (
            *(output, topic, partition, key, value),
            *(headers[0] if headers else record.headers, record.timestamp),
            *((*seen, *record[3:8]) if number == output else None for number in self._layout.seen),
        )

    def tables(self) -> Iterator[tuple[int, "pa.Table"]]:
        """Yield what was emitted, by where: TO_OUTPUT, or the number of a stage input."""
        import pyarrow as pa

        for to, found in self._found.items():
            schema = pa.ipc.read_schema(pa.py_buffer(self._layout.schema(to)))
            columns = dict(zip(self._layout.names(to), zip(*found, strict=True), strict=True))
            yield (
                to,
                pa.Table.from_arrays(
                    [pa.array(columns[each.name], each.type) for each in schema], schema=schema
                ),
            )
        self._found = {}


def follow(paths: Paths, records: Iterable[OriginRecord], emissions: Emissions) -> None:
    """Let records go their paths, and gather what is emitted."""
    from ottla.streams.errors import FunctionFailed

    path = paths.follow
    for record in records:
        emitted: list[tuple[Any, ...]] = []
        try:
            path(record.key, record.value, record.old, emitted.append)
        except FunctionFailed as failed:
            raise failed.located(record.topic, record.partition, record.offset) from failed.__cause__
        if emitted:
            emissions.take(record, emitted)
