"""An aggregate for each key of a stream: count, reduce, aggregate; and of several streams, which is a cogroup.

Records without key or value are dropped. The time of an aggregate is the latest of its records'. An adder that returns
None deletes the row, and the next record begins anew.
"""

from typing import TYPE_CHECKING

from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.fold import Fold
    from ottla.streams.lowering.stateful.record import Record
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


def lower_aggregate(
    node: "AggregateNode | Cogroup", inputs: "list[DataFrame]", context: "Context"
) -> "DataFrame":
    """Lower an aggregate without windows."""
    from ottla.streams.lowering.stateful.fold import fold_of
    from ottla.streams.lowering.stateful.native import native_count
    from ottla.streams.lowering.stateful.transform import transform

    if context.native:
        return native_count(node, inputs[0])
    fold = fold_of(node, node.key)
    return transform(node, inputs, context, Aggregate(fold), values=fold.method != "count")
