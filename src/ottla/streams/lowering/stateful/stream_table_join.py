"""A stream joined with a table: each record meets the row of its key as it is when the record's turn comes.

Only records of the stream make results; a change of the table is remembered. Who comes first is the order of timestamps
within a micro-batch (`order.py`), and of equal ones the table's. A record without a value is dropped, and so is one
without a key, but for a left join.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.joins import StreamTableJoin as StreamTableJoinNode


class StreamTableJoin(Operator):
    """rows: key → the table's value."""

    def __init__(self, how: str, join: Callable[[Any, Any, Any], Any]) -> None:
        self._left = how == "left"
        self._join = join

    def step(self, record: "Record") -> None:
        """Take a change of the table (side 1), or let a record of the stream meet its row."""
        if record.side == 1:
            if record.at is None:
                return
            if record.value is None:
                self.rows.delete(record.at)
            else:
                self.rows.put(record.at, record.value)
            return
        if record.value is None:
            return
        row = None if record.at is None else self.rows.get(record.at)
        if row is not None or self._left:
            joined = self._join(record.key, record.value, row)
            self.emit(record.key, joined, None, record.timestamp, record.headers)


def stream_table_join_stages(node: "StreamTableJoinNode", context: "Context") -> "list[Stage]":
    """Return a join of a stream with a table."""
    from ottla.streams.lowering.stateful.joining import joiner
    from ottla.streams.lowering.stateful.stage import stage

    join = joiner(node, node.inputs[0].value, node.inputs[1].value)
    return [stage(node, StreamTableJoin(node.how, join), ranks=(1, 0))]
