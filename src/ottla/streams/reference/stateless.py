"""Operators on streams that remember nothing."""

from collections.abc import Iterable

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Peek,
    SelectKey,
)
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator


def called(function: Function, node: Node) -> Called:
    """Return a function of the key and the value that flow into an operator."""
    return Called(function, node.name, key=node.inputs[0].key, value=node.inputs[0].value)


class PassOn(Operator):
    """A stream source, a merge, a repartition: records go on as they are."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Pass it on."""
        return (change,)


class FilterRecords(Operator):
    """Keeps what the predicate holds for, or does not."""

    def __init__(self, node: Filter) -> None:
        self._predicate = called(node.predicate, node)
        self._wanted = not node.negated

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Pass it on, or not."""
        return (change,) if self._predicate.holds(change.key, change.value) is self._wanted else ()


class BranchOff(Operator):
    """Keeps what no earlier predicate holds for, and the last one does; of the rest, what none holds for."""

    def __init__(self, node: Branch) -> None:
        self._predicates = [called(each, node) for each in node.predicates]
        self._wanted = None if node.rest else len(node.predicates) - 1

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Find its way."""
        ways = (n for n, each in enumerate(self._predicates) if each.holds(change.key, change.value))
        return (change,) if next(ways, None) == self._wanted else ()


class MapRecords(Operator):
    """Makes a key and a value of each record."""

    def __init__(self, node: Map) -> None:
        self._node = node
        self._mapper = called(node.mapper, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Map it."""
        key, value = self._mapper.pair(self._mapper.raw(change.key, change.value))
        key, value = self._mapper.dumped(self._node.key, key), self._mapper.dumped(self._node.value, value)
        return (change._replace(key=key, value=value),)


class MapEachValue(Operator):
    """Makes a value of each record."""

    def __init__(self, node: MapValues) -> None:
        self._mapper = called(node.mapper, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Map it."""
        return (change._replace(value=self._mapper(change.key, change.value)),)


class FlatMapRecords(Operator):
    """Makes any number of keys and values of each record."""

    def __init__(self, node: FlatMap) -> None:
        self._node = node
        self._mapper = called(node.mapper, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Map it."""
        mapper, node = self._mapper, self._node
        found = mapper.guarded(list, mapper.guarded(iter, mapper.raw(change.key, change.value)))
        pairs = [mapper.pair(each) for each in found]
        return [
            change._replace(key=mapper.dumped(node.key, key), value=mapper.dumped(node.value, value))
            for key, value in pairs
        ]


class FlatMapEachValue(Operator):
    """Makes any number of values of each record."""

    def __init__(self, node: FlatMapValues) -> None:
        self._node = node
        self._mapper = called(node.mapper, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Map it."""
        mapper = self._mapper
        found = mapper.guarded(list, mapper.guarded(iter, mapper.raw(change.key, change.value)))
        return [change._replace(value=mapper.dumped(self._node.value, each)) for each in found]


class SelectAKey(Operator):
    """Makes a key of each record."""

    def __init__(self, node: SelectKey) -> None:
        self._node = node
        self._selector = called(node.selector, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Give it another key."""
        found = self._selector.raw(change.key, change.value)
        return (change._replace(key=self._selector.dumped(self._node.key, found)),)


class PeekAt(Operator):
    """Shows each record to a function."""

    def __init__(self, node: Peek) -> None:
        self._action = called(node.action, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Show it, and pass it on."""
        self._action.raw(change.key, change.value)
        return (change,)
