"""How values gather into an aggregate: count, reduce and aggregate, by the user's functions.

Aggregates are plain; None stands for none, before and after.
"""

from typing import Any

from ottla.streams.plan.aggregates import Aggregate, Cogroup
from ottla.streams.plan.function import Function
from ottla.streams.reference.calling import Called, Loaded


class Fold:
    """The arithmetic of an aggregate of one stream, or of several."""

    def __init__(self, node: Aggregate | Cogroup) -> None:
        self._method = node.method if isinstance(node, Aggregate) else "aggregate"
        key, name = node.inputs[0].key, node.name
        adders = node.adders if isinstance(node, Cogroup) else (node.adder,)
        self._adders: list[Called | None] = []
        for adder, source in zip(adders, node.inputs, strict=True):
            if adder is None:
                self._adders.append(None)
            elif self._method == "reduce":
                self._adders.append(Called(adder, name, aggregate=node.value, value=source.value))
            else:
                self._adders.append(Called(adder, name, key=key, value=source.value, aggregate=node.value))
        self._initializer = _optional(node.initializer, name)
        self._merger = None
        if node.merger is not None and self._method == "aggregate":
            self._merger = Called(node.merger, name, key=key, aggregate=node.value, other=node.value)

    def add(self, side: int, key: Any, value: Any, aggregate: Any) -> Any:
        """Return an aggregate with a value in it that came by an input."""
        if self._method == "count":
            return 1 if aggregate is None else aggregate + 1
        adder = self._adders[side]
        assert adder is not None
        if self._method == "reduce":
            return value if aggregate is None else adder(aggregate, value)
        return adder(key, value, self._begun(aggregate))

    def merge(self, key: Any, one: Any, other: Any) -> Any:
        """Return the aggregate of two sessions that become one; `one` may be a session that only begins."""
        if self._method == "count":
            return other if one is None else one + other
        if self._method == "reduce":
            (reducer,) = self._adders
            assert reducer is not None
            return other if one is None else reducer(one, other)
        assert self._merger is not None
        return self._merger(key, self._begun(one), other)

    def _begun(self, aggregate: Any) -> Any:
        if aggregate is not None or self._initializer is None:
            return aggregate
        return Loaded(self._initializer.raw())


class Balance:
    """The arithmetic of an aggregate over the rows of a table, out of which values are taken again."""

    def __init__(
        self,
        method: str,
        initializer: Function | None,
        adder: Called | None,
        subtractor: Called | None,
        name: str,
    ) -> None:
        self._method = method
        self._initializer = _optional(initializer, name)
        self._adder = adder
        self._subtractor = subtractor

    def add(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return an aggregate with a value in it."""
        if self._method == "count":
            return 1 if aggregate is None else aggregate + 1
        assert self._adder is not None
        if self._method == "reduce":
            return value if aggregate is None else self._adder(aggregate, value)
        if aggregate is None and self._initializer is not None:
            aggregate = Loaded(self._initializer.raw())
        return self._adder(key, value, aggregate)

    def subtract(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return an aggregate without a value that was in it."""
        if self._method == "count":
            return aggregate - 1
        assert self._subtractor is not None
        if self._method == "reduce":
            return self._subtractor(aggregate, value)
        return self._subtractor(key, value, aggregate)


def _optional(initializer: Function | None, operator: str) -> Called | None:
    return None if initializer is None else Called(initializer, operator)
