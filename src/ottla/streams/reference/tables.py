"""Tables of topics and of streams, and what remembers nothing of tables: a change brings its old value along.

A function is never called for a side of a change that is null.
"""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.node import Node
from ottla.streams.plan.tables import TableFilter, TableMapValues
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.stateless import called


class LatestOfEachKey(Operator):
    """A table: a record replaces the row of its key, whatever its timestamp; a null value deletes it; a null key is
    dropped. Every record flows on as a change, also the deletion of a row that was not there.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rows: dict[bytes, Any] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Put it in the place of the one before it."""
        if change.key is None:
            return ()
        at = key_bytes(self._node.key, change.key)
        old = self._rows.pop(at, None)
        if change.value is not None:
            self._rows[at] = change.value
        return (change._replace(old=old),)


class FilterTable(Operator):
    """Makes a tombstone of what the predicate does not hold for. Where nothing was and nothing is, none flows out."""

    def __init__(self, node: TableFilter) -> None:
        self._predicate = called(node.predicate, node)
        self._wanted = not node.negated

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Filter both sides of a change."""
        value, old = self._kept(change.key, change.value), self._kept(change.key, change.old)
        return () if value is None and old is None else (change._replace(value=value, old=old),)

    def _kept(self, key: Any, value: Any) -> Any:
        if value is None:
            return None
        return value if self._predicate.holds(key, value) is self._wanted else None


class MapTable(Operator):
    """Makes a value of each row."""

    def __init__(self, node: TableMapValues) -> None:
        self._mapper = called(node.mapper, node)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Map both sides of a change."""
        value, old = self._mapped(change.key, change.value), self._mapped(change.key, change.old)
        return (change._replace(value=value, old=old),)

    def _mapped(self, key: Any, value: Any) -> Any:
        return None if value is None else self._mapper(key, value)


class ChangesAsRecords(Operator):
    """A table as a stream of its changes."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Forget what was before it."""
        return (change._replace(old=None),)


class MoveBetweenGroups(Operator):
    """Says of each change which group its row leaves and which one it joins, in that order; both at once if it stays.

    Out of it flow pairs of (added, removed). A row without a group or without a value in it is in none.
    """

    def __init__(self, node: Regroup) -> None:
        self._node = node
        self._selector = called(node.selector, node)
        self._types = node.key, node.selector.result.parts[1]  # type: ignore[attr-defined]

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Take the row out of its old group, and put it into its new one."""
        new, old = self._chosen(change.key, change.value), self._chosen(change.key, change.old)
        if new is not None and old is not None and self._at(new) == self._at(old):
            return (self._moved(change, new[0], new[1], old[1]),)
        left = () if old is None else (self._moved(change, old[0], None, old[1]),)
        joined = () if new is None else (self._moved(change, new[0], new[1], None),)
        return (*left, *joined)

    def _chosen(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = self._selector.pair(self._selector.raw(key, value))
        if pair[0] is None or pair[1] is None:
            return None
        group, part = (
            self._selector.dumped(type, each) for type, each in zip(self._types, pair, strict=True)
        )
        return group, part

    def _at(self, chosen: tuple[Any, Any]) -> bytes:
        return key_bytes(self._node.key, chosen[0])

    def _moved(self, change: Change, group: Any, added: Any, removed: Any) -> Change:
        return change._replace(key=group, value=(added, removed), old=None)
