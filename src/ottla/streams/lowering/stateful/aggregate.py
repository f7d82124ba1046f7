"""An aggregate for each key of a stream: count, reduce, aggregate; and of several streams, which is a cogroup.

Records without key or value are dropped. The time of an aggregate is the latest of its records'. An adder that returns
None deletes the row, and the next record begins anew.
"""

from typing import TYPE_CHECKING

from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.fold import Fold
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.aggregates import Aggregate as AggregateNode
    from ottla.streams.plan.aggregates import Cogroup


class Aggregate(Operator):
    """rows: key → (aggregate, timestamp)."""

    def __init__(self, fold: "Fold") -> None:
        self._fold = fold

    def step(self, record: "Record") -> None:
        """Add a record to the aggregate of its key."""
        if record.at is None or record.value is None:
            return
        row = self.rows.get(record.at)
        old, timestamp = (None, record.timestamp) if row is None else (row[0], max(row[1], record.timestamp))
        new = self._fold.add(record, old)
        if new is None:
            self.rows.delete(record.at)
        else:
            self.rows.put(record.at, (new, timestamp))
        self.emit(record.key, new, old, timestamp, record.headers)


def aggregate_stages(node: "AggregateNode | Cogroup", context: "Context") -> "list[Stage]":
    """Return an aggregate without windows."""
    from ottla.streams.lowering.stateful.fold import fold_of
    from ottla.streams.lowering.stateful.stage import stage

    fold = fold_of(node, node.key)
    return [stage(node, Aggregate(fold), values=fold.method != "count")]
