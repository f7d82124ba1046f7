"""A table of a topic, or of a stream: the last value of each key.

A record replaces the row of its key, whatever its timestamp; a null value deletes it; one without a key is dropped.
Every record flows on as a change, also the deletion of a row that was not there, as in Kafka Streams.

Where nobody asks for the value before a change, the table keeps no rows at all: those who join with it keep their own.
"""

from typing import TYPE_CHECKING

from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.node import Node


class Table(Operator):
    """rows: key → value."""

    def step(self, record: "Record") -> None:
        """Put a record in the place of the one before it."""
        if record.at is None:
            return
        old = self.rows.get(record.at)
        if record.value is None:
            self.rows.delete(record.at)
        else:
            self.rows.put(record.at, record.value)
        self.emit(record.key, record.value, old, record.timestamp, record.headers)


def table_stages(node: "Node", context: "Context") -> "list[Stage]":
    """Return a table of records: no stage at all where nobody asks for the values before."""
    from ottla.streams.lowering.stateful.stage import stage
    from ottla.streams.plan.node import StreamNode
    from ottla.streams.plan.sources import Source

    if context.wants_old is not None and node not in context.wants_old:
        return []
    if isinstance(node, Source):
        records = StreamNode(name=node.name, key=node.key, value=node.value)
        return [stage(node, Table(), inputs=(records,))]
    return [stage(node, Table())]
