"""A pass over records at their origin: each goes all its ways, before the next one does.

A record that cannot be read becomes a row for the dead-letter topic, in its place among the others.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from ottla.streams.lowering.arrivals import LEAVES, TAIL, Arrivals, Departing, Gates, Place, Ways, follow
from ottla.streams.lowering.stateful.parcels import batch_of, packed
from ottla.streams.lowering.stateful.plain import values


@dataclass(frozen=True)
class Letters:
    """How records that cannot be read leave: as which output, and to which topic."""

    output: int
    topic: str
    told: Callable[..., list[tuple[str, bytes | None]]]


@dataclass(frozen=True)
class Pass:
    """Takes batches of records, and gives rows, or parcels where stages follow (`is_packed`)."""

    ways: Ways
    gates: Gates
    is_packed: bool
    letters: Letters | None = None
    clock: Callable[[Any, Any], int] | None = None  # what time a record says that it is of

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Let the records of batches go their ways."""
        self.ways.begin()
        parts = count()
        for batch in batches:
            arrivals = Arrivals(self.gates)
            for record, row in self._records(batch):
                if row is None:
                    follow(self.ways, (record,), arrivals)
                else:
                    arrivals.take(record, (row,))
            if self.is_packed:
                parcels = list(packed(arrivals, self.gates, None, parts))
                if parcels:
                    yield batch_of(parcels)
            else:
                for _, table in arrivals.tables():
                    yield from table.to_batches()

    def _records(self, batch: pa.RecordBatch) -> Iterator[tuple[Departing, tuple[Any, ...] | None]]:
        columns = {name: values(batch.column(name)) for name in batch.schema.names}
        nothing = [None] * batch.num_rows
        rows = zip(
            columns["key"],
            columns["value"],
            columns.get("old", nothing),
            *(columns[name] for name in TAIL),
            strict=True,
        )
        reasons = columns.get("reason", nothing)
        for n, fields in enumerate(rows):
            record = Departing(*fields)
            if reasons[n] is not None:
                assert self.letters is not None
                letters = self.letters
                told = letters.told(reasons[n], record.topic, record.partition, record.offset)
                bad = columns["raw_key"][n], columns["raw_value"][n]
                headers = [*(record.headers or ()), *told]
                yield self._placed(record), (LEAVES, letters.output, letters.topic, None, *bad, None, headers)
                continue
            if self.clock is not None:
                record = record._replace(timestamp=self._timed(record))
            yield self._placed(record), None

    def _timed(self, record: Departing) -> int:
        from ottla.streams.errors import FunctionFailed

        assert self.clock is not None
        try:
            return self.clock(record.key, record.value)
        except FunctionFailed as failed:
            raise failed.located(record.topic, record.partition, record.offset) from failed.__cause__

    def _placed(self, record: Departing) -> Departing:
        if not self.gates.is_placed:
            return record
        return record._replace(place=Place(record.topic, record.partition, record.offset, record.timestamp))
