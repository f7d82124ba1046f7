"""A pass over records at their origin: each goes all its paths, before the next one does.

A record that cannot be read becomes a row for the dead-letter topic, in its place among the others.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from ottla.streams.lowering.emission import (
    TAIL,
    TO_OUTPUT,
    Emissions,
    Layout,
    Lineage,
    OriginRecord,
    Paths,
    follow,
)
from ottla.streams.lowering.stateful.parcels import batch_of, packed
from ottla.streams.lowering.stateful.plain import values


@dataclass(frozen=True)
class DeadLetters:
    """How records that cannot be read leave: as which output, and to which topic."""

    output: int
    topic: str
    told: Callable[..., list[tuple[str, bytes | None]]]


@dataclass(frozen=True)
class OriginPass:
    """Takes batches of records, and gives rows, or parcels where stages follow (`is_packed`)."""

    paths: Paths
    layout: Layout
    is_packed: bool
    letters: DeadLetters | None = None
    clock: Callable[[Any, Any], int] | None = None  # what time a record says that it is of

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Let the records of batches go their paths."""
        self.paths.begin()
        parts = count()
        for batch in batches:
            emissions = Emissions(self.layout)
            for record, row in self._records(batch):
                if row is None:
                    follow(self.paths, (record,), emissions)
                else:
                    emissions.take(record, (row,))
            if self.is_packed:
                parcels = list(packed(emissions, self.layout, None, parts))
                if parcels:
                    yield batch_of(parcels)
            else:
                for _, table in emissions.tables():
                    yield from table.to_batches()

    def _records(self, batch: pa.RecordBatch) -> Iterator[tuple[OriginRecord, tuple[Any, ...] | None]]:
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
            record = OriginRecord(*fields)
            if reasons[n] is not None:
                assert self.letters is not None
                letters = self.letters
                told = letters.told(reasons[n], record.topic, record.partition, record.offset)
                bad = columns["raw_key"][n], columns["raw_value"][n]
                headers = [*(record.headers or ()), *told]
                row = (TO_OUTPUT, letters.output, letters.topic, None, *bad, None, headers)
                yield self._with_lineage(record), row
                continue
            if self.clock is not None:
                record = record._replace(timestamp=self._timed(record))
            yield self._with_lineage(record), None

    def _timed(self, record: OriginRecord) -> int:
        from ottla.streams.errors import FunctionFailed

        assert self.clock is not None
        try:
            return self.clock(record.key, record.value)
        except FunctionFailed as failed:
            raise failed.located(record.topic, record.partition, record.offset) from failed.__cause__

    def _with_lineage(self, record: OriginRecord) -> OriginRecord:
        if not self.layout.has_lineage:
            return record
        lineage = Lineage(record.topic, record.partition, record.offset, record.timestamp)
        return record._replace(lineage=lineage)
