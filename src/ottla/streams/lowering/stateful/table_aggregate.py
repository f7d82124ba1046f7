"""An aggregate over the rows of a table, for each group that they belong to.

A change of a row comes as (added, removed): what it was is subtracted from the aggregate of its group, what it is is
added. When a row stays in its group both come together and give one change, otherwise its old group hears of the one
and its new group of the other. What is to be subtracted from a group that is empty is passed over, as in Kafka Streams.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.lowering.stateful.fold import _same
from ottla.streams.lowering.stateful.operator import Operator

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.aggregates import TableAggregate as TableAggregateNode

Call = Callable[..., Any]


@dataclass(frozen=True)
class Balance:
    """What is added and taken away again. `add` and `subtract` are (key, value, aggregate) → aggregate, all loaded."""

    method: str  # count, reduce or aggregate
    initializer: Call | None = None
    adder: Call | None = None  # reduce: (aggregate, value); aggregate: (key, value, aggregate)
    subtractor: Call | None = None
    load_key: Call = _same
    load_value: Call = _same
    load: Call = _same
    dump: Call = _same

    def add(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return an aggregate with a value in it; None stands for none yet."""
        if self.method == "count":
            return 1 if aggregate is None else aggregate + 1
        assert self.adder is not None
        if self.method == "reduce":
            if aggregate is None:
                return value
            return self.dump(self.adder(self.load(aggregate), self.load_value(value)))
        before = self.initializer() if aggregate is None and self.initializer else self.load(aggregate)
        return self.dump(self.adder(self.load_key(key), self.load_value(value), before))

    def subtract(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return an aggregate without a value that is in it."""
        if self.method == "count":
            return aggregate - 1
        assert self.subtractor is not None
        if self.method == "reduce":
            return self.dump(self.subtractor(self.load(aggregate), self.load_value(value)))
        return self.dump(self.subtractor(self.load_key(key), self.load_value(value), self.load(aggregate)))


class TableAggregate(Operator):
    """rows: key → (aggregate, timestamp)."""

    def __init__(self, balance: Balance) -> None:
        self._balance = balance

    def step(self, record: "Record") -> None:
        """Take a value out of a group, put one in, or both."""
        if record.at is None or record.value is None:
            return
        added, removed = record.value
        row = self.rows.get(record.at)
        old, timestamp = (None, record.timestamp) if row is None else (row[0], max(row[1], record.timestamp))
        new = old
        if removed is not None and new is not None:
            new = self._balance.subtract(record.key, removed, new)
        if added is not None:
            new = self._balance.add(record.key, added, new)
        if new is None:
            self.rows.delete(record.at)
        else:
            self.rows.put(record.at, (new, timestamp))
        if new is not None or old is not None:
            self.emit(record.key, new, old, timestamp, record.headers)


def table_aggregate_stages(node: "TableAggregateNode", context: "Context") -> "list[Stage]":
    """Return an aggregate of a table; its input is a Regroup."""
    from ottla.streams.lowering.calling import caller, dumper, loader
    from ottla.streams.lowering.stateful.stage import stage
    from ottla.streams.types.struct import bare

    if node.method == "count":
        return [stage(node, TableAggregate(Balance("count")))]
    assert node.adder is not None
    assert node.subtractor is not None
    offered = ("aggregate", "value") if node.method == "reduce" else ("key", "value", "aggregate")
    moved = bare(node.input.value)
    value = bare(moved.field("added").type)  # type: ignore[attr-defined]
    balance = Balance(
        node.method,
        caller(node.initializer, (), node.name) if node.initializer else None,
        caller(node.adder, offered, node.name),
        caller(node.subtractor, offered, node.name),
        loader(node.key),
        loader(value),
        loader(node.value),
        dumper(node.value, node.name, node.adder.place),
    )
    return [stage(node, TableAggregate(balance))]
