"""An operator inside Spark's transformWithState: parcels come in, parcels go out, stores are Spark's state.

Spark's group is the operator partition, not the key: so an operator sees the records of many keys in their order,
has one stream time, reads the state of all of them in a few requests, and costs Spark a handful of rows.

H1  Parcels for other stages, and those that leave the topology, pass unopened.
H2  What flows out of the operator goes its paths without state at once, in this process, up to the next stages and to
    the ends. So each operator runs once, however many read it.

When a query starts, Spark unpickles each host once in a process of its own, to be told which states there are, and
waits for that: so what is needed only to work on records is imported only then.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.emission import Emissions, Layout, Lineage, OriginRecord, Paths, follow
from ottla.streams.lowering.stateful.backing import BYTES, MapBacking
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.labels import partition_called
from ottla.streams.lowering.stateful.latest import latest
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Output, Record
from ottla.streams.lowering.stateful.store import Store
from ottla.streams.types.type import Type

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues


@dataclass(frozen=True)
class Frame:
    """What surrounds an operator: its name, its inputs, and the paths on from it."""

    name: str
    partitions: int
    sides: Mapping[int, int]  # the input of each target that is this operator's
    keys: tuple[Type, ...]  # of each input
    ranks: tuple[int, ...]  # which input goes first at equal times
    key: Type  # of what flows out
    paths: Paths
    layout: Layout
    is_last: bool  # whether no stage follows
    collapse: bool = False  # whether one change a key and micro-batch flows out


class Host(StatefulProcessor):
    """Runs an operator for each operator partition that Spark hands over."""

    def __init__(self, operator: Operator, frame: Frame) -> None:
        self._operator = operator
        self._frame = frame

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._states = {name: handle.getMapState(name, BYTES, BYTES) for name in self._operator.stores}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: N802, N803
        """Run a micro-batch of an operator partition."""
        from ottla.streams.lowering.stateful.parcels import opened

        sides = self._frame.sides
        parcels = []
        for row in sorted(rows, key=lambda row: row.part):
            side = sides.get(row.target)
            if side is None:
                yield Row(label=row.label, target=row.target, part=row.part, data=row.data)
            else:
                parcels.append((side, row.data))
        if parcels:
            records = opened(parcels, self._frame.keys, self._frame.ranks)
            yield from self._run(key[0], records, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: "TimerValues",  # noqa: N803
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: N803
    ) -> Iterator[Row]:
        """Wake an operator that has asked for it."""
        yield from self._run(key[0], (), timerValues)

    def _run(self, label: int, records: Sequence[Record], timers: "TimerValues") -> Iterator[Row]:
        operator, frame = self._operator, self._frame
        stores = {name: Store(MapBacking(state)) for name, state in self._states.items()}
        partition = partition_called(label, frame.partitions)
        operator.partition, operator.now = partition, timers.getCurrentProcessingTimeInMs()
        operator.open(stores)
        operator.prepare(records)
        for record in records:
            done = len(operator.out)
            try:
                operator.step(record)
            except FunctionFailed as failed:
                raise failed.located(record.topic, record.partition, record.offset) from failed.__cause__
            if record.lineage is not None:
                for n in range(done, len(operator.out)):
                    operator.out[n] = operator.out[n]._replace(lineage=record.lineage.further(n))
        operator.finish()
        if operator.now >= 0:
            for time in operator.alarms():
                self._handle.registerTimer(time)
        out: Sequence[Output] = operator.out
        if frame.collapse:
            out = latest(out, key_code(frame.key).encode)
        for store in stores.values():
            store.flush()
        yield from self._sent(out, label, partition)

    def _sent(self, out: Sequence[Output], label: int, partition: int) -> Iterator[Row]:
        """Let what flows out go on its paths."""
        from ottla.streams.lowering.stateful.parcels import packed

        frame = self._frame
        frame.paths.begin()
        emissions = Emissions(frame.layout)
        follow(frame.paths, self._origin_records(out, partition), emissions)
        for parcel in packed(emissions, frame.layout, label if frame.is_last else None, count()):
            yield Row(**parcel._asdict())

    def _origin_records(self, out: Sequence[Output], partition: int) -> Iterator[OriginRecord]:
        name, has_lineage = self._frame.name, self._frame.layout.has_lineage
        for n, each in enumerate(out):
            lineage = each.lineage
            if lineage is None and has_lineage:  # by the clock on the wall, so of no record
                lineage = Lineage(name, partition, n, each.timestamp)
            yield OriginRecord(*each[:5], name, partition, n, lineage)

    def close(self) -> None:
        """Nothing is left open."""
