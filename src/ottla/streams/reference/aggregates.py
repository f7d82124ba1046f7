"""Aggregates without windows: of a stream, of several streams, of the rows of a table.

The time of an aggregate is the latest of what is in it. A function that returns None deletes the row.
"""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.aggregates import Aggregate, Cogroup, TableAggregate
from ottla.streams.plan.function import Function
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.fold import Balance, Fold
from ottla.streams.reference.keys import key_bytes
from ottla.streams.types.struct import Struct


class AggregateByKey(Operator):
    """Of one stream or of several. Records without key or value are dropped."""

    def __init__(self, node: Aggregate | Cogroup) -> None:
        self._node = node
        self._fold = Fold(node)
        self._rows: dict[bytes, tuple[Any, int]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Add a record to the aggregate of its key."""
        if change.key is None or change.value is None:
            return ()
        at = key_bytes(self._node.key, change.key)
        old, timestamp = self._rows.get(at, (None, change.timestamp))
        timestamp = max(timestamp, change.timestamp)
        new = self._fold.add(side, change.key, change.value, old)
        _put(self._rows, at, new, timestamp)
        return (change._replace(value=new, old=old, timestamp=timestamp),)


class AggregateOfTable(Operator):
    """Of the rows of a table by the groups that they belong to: what was in a group is taken out before what is in it
    is put in. What is to be taken out of a group that is empty is passed over.
    """

    def __init__(self, node: TableAggregate) -> None:
        self._node = node
        adder, subtractor = _called(node, node.adder), _called(node, node.subtractor)
        self._balance = Balance(node.method, node.initializer, adder, subtractor, node.name)
        self._rows: dict[bytes, tuple[Any, int]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Take a value out of a group, put one in, or both."""
        if change.key is None or change.value is None:
            return ()
        added, removed = change.value
        at = key_bytes(self._node.key, change.key)
        old, timestamp = self._rows.get(at, (None, change.timestamp))
        timestamp = max(timestamp, change.timestamp)
        new = old
        if removed is not None and new is not None:
            new = self._balance.subtract(change.key, removed, new)
        if added is not None:
            new = self._balance.add(change.key, added, new)
        _put(self._rows, at, new, timestamp)
        if new is None and old is None:
            return ()
        return (change._replace(value=new, old=old, timestamp=timestamp),)


def _put(rows: dict[bytes, tuple[Any, int]], at: bytes, value: Any, timestamp: int) -> None:
    if value is None:
        rows.pop(at, None)
    else:
        rows[at] = (value, timestamp)


def _called(node: TableAggregate, function: Function | None) -> Called | None:
    if function is None:
        return None
    moved = node.input.value
    assert isinstance(moved, Struct)
    value = moved.fields[0].type
    if node.method == "reduce":
        return Called(function, node.name, aggregate=node.value, value=value)
    return Called(function, node.name, key=node.key, value=value, aggregate=node.value)
