"""Two tables joined by key: a row for each key that both have, or the left, or either, kept up to date from both sides.

A change of one side meets the row of the other as it is. The result's time is the later one of both rows'. A
deletion of what was never there gives nothing, and neither does a change whose key the other side does not have,
where the join asks for it; so what flows out is what Kafka Streams' documentation has in its table of joins.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.joins import TableJoin as TableJoinNode


class TableJoin(Operator):
    """rows: key → (left value, left timestamp, right value, right timestamp), where a value may be missing."""

    def __init__(self, how: str, join: Callable[[Any, Any, Any], Any]) -> None:
        self._join = join
        # Of which sides a row must be there for a result.
        self._needs = {"inner": (True, True), "left": (True, False), "outer": (False, False)}[how]

    def step(self, record: "Record") -> None:
        """Take a change of either side."""
        if record.at is None:
            return
        row = list(self.rows.get(record.at) or (None, 0, None, 0))
        mine, other = (0, 2) if record.side == 0 else (2, 0)
        before = row[mine]
        theirs, their_time = row[other], row[other + 1]
        row[mine], row[mine + 1] = record.value, record.timestamp
        if row[0] is None and row[2] is None:
            self.rows.delete(record.at)
        else:
            self.rows.put(record.at, tuple(row))
        if theirs is None and self._needs[1 - record.side]:
            return
        timestamp = record.timestamp if theirs is None else max(record.timestamp, their_time)
        new = self._joined(record.key, record.side, record.value, theirs)
        old = self._joined(record.key, record.side, before, theirs)
        if new is not None or old is not None:
            self.emit(record.key, new, old, timestamp, record.headers)

    def _joined(self, key: Any, side: int, mine: Any, theirs: Any) -> Any:
        left, right = (mine, theirs) if side == 0 else (theirs, mine)
        if left is None and (self._needs[0] or right is None):
            return None
        if right is None and self._needs[1]:
            return None
        return self._join(key, left, right)


def table_join_stages(node: "TableJoinNode", context: "Context") -> "list[Stage]":
    """Return a join of two tables."""
    from ottla.streams.lowering.stateful.joining import joiner
    from ottla.streams.lowering.stateful.stage import stage

    join = joiner(node, node.inputs[0].value, node.inputs[1].value)
    return [stage(node, TableJoin(node.how, join))]
