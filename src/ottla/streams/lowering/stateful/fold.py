"""How values gather into an aggregate: count, reduce and aggregate, by the user's functions.

Aggregates are plain here, as they are kept; the functions see what the types make of them. A count calls nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.lowering.stateful.record import Record
from ottla.streams.plan.aggregates import Aggregate, Cogroup
from ottla.streams.types.type import Type

Call = Callable[..., Any]


def _same(given: Any) -> Any:
    return given


@dataclass(frozen=True)
class Fold:
    """An aggregate's arithmetic. `adders[side]` adds a value that came by that input."""

    method: str  # count, reduce or aggregate
    initializer: Call | None = None  # () → aggregate
    adders: tuple[Call, ...] = ()  # reduce: (aggregate, value); aggregate: (key, value, aggregate)
    merger: Call | None = None  # (key, aggregate, aggregate) → aggregate
    load_key: Call = _same
    load_values: tuple[Call, ...] = (_same,)
    load: Call = _same
    dump: Call = _same

    def add(self, record: Record, aggregate: Any) -> Any:
        """Return the aggregate with a record's value in it; None stands for no aggregate, before and after."""
        if self.method == "count":
            return 1 if aggregate is None else aggregate + 1
        if self.method == "reduce":
            if aggregate is None:
                return record.value
            return self.dump(self.adders[0](self.load(aggregate), self.load_values[0](record.value)))
        side = record.side if len(self.adders) > 1 else 0
        before = self.initializer() if aggregate is None and self.initializer else self.load(aggregate)
        value = self.load_values[side](record.value)
        return self.dump(self.adders[side](self.load_key(record.key), value, before))

    def merge(self, key: Any, one: Any, other: Any) -> Any:
        """Return the aggregate of two sessions that have become one; None stands for one that has only begun."""
        if other is None:
            return one
        if self.method == "count":
            return other if one is None else one + other
        if self.method == "reduce":
            return other if one is None else self.dump(self.adders[0](self.load(one), self.load(other)))
        assert self.merger is not None
        assert self.initializer is not None
        before = self.initializer() if one is None else self.load(one)
        return self.dump(self.merger(self.load_key(key), before, self.load(other)))


def fold_of(node: Aggregate | Cogroup, key: Type) -> Fold:
    """Return the arithmetic of an operator whose records have keys of type `key`."""
    if isinstance(node, Aggregate) and node.method == "count":
        return Fold("count")
    reduces = isinstance(node, Aggregate) and node.method == "reduce"
    adders = (node.adder,) if isinstance(node, Aggregate) else node.adders
    offered = ("aggregate", "value") if reduces else ("key", "value", "aggregate")
    functions = [each for each in adders if each is not None]
    return Fold(
        "reduce" if reduces else "aggregate",
        caller(node.initializer, (), node.name) if node.initializer else None,
        tuple(caller(each, offered, node.name) for each in functions),
        caller(node.merger, ("key", "aggregate", "other"), node.name) if node.merger else None,
        loader(key),
        tuple(loader(each.value) for each in node.inputs),
        loader(node.value),
        dumper(node.value, node.name, functions[0].place),
    )
