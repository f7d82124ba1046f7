"""What an operator is, without Spark: records of one operator partition go in by their order, stores are read and
written, what flows out is listed.

    open(stores) → prepare(records) → step(record) for each → finish() → out          once for every micro-batch

P1  Between micro-batches an operator remembers what is in its stores, and nothing else.
P2  What flows out does not depend on where micro-batches begin and end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.streams.lowering.stateful.record import Output, Record
from ottla.streams.lowering.stateful.store import Store


class Operator:
    """The half that all operators share."""

    # The stores it keeps, by name.
    stores: tuple[str, ...] = ("rows",)
    # Whether it wants to be woken by the clock on the wall.
    wall_clock: bool = False
    # Which operator partition this is, and the time on the wall (-1 where nobody wants it): set before `open`.
    partition: int = 0
    now: int = -1

    out: list[Output]
    rows: Store

    def open(self, stores: Mapping[str, Store]) -> None:
        """Begin a micro-batch."""
        self.out = []
        if "rows" in stores:
            self.rows = stores["rows"]

    def prepare(self, records: Sequence[Record]) -> None:
        """Read ahead what these records will need."""
        self.rows.fetch(record.at for record in records if record.at is not None)

    def step(self, record: Record) -> None:
        """Take a record."""
        raise NotImplementedError

    def finish(self) -> None:
        """End a micro-batch: what is still in memory goes to the stores."""

    def alarms(self) -> list[int]:
        """Return when to be woken by the clock on the wall, after `finish`."""
        return []

    def emit(self, key: Any, value: Any, old: Any, timestamp: int, headers: Any = None) -> None:
        """Let something flow out."""
        self.out.append(Output(key, value, old, timestamp, headers))
