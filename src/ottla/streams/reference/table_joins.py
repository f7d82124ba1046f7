"""Joins with tables: a stream with a table or a global table, and two tables."""

from collections.abc import Iterable
from typing import Any

from ottla.streams.plan.joins import GlobalTableJoin, StreamTableJoin, TableJoin
from ottla.streams.reference.calling import Called
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.sources import GlobalTable
from ottla.streams.reference.stateless import called


class JoinWithTable(Operator):
    """Each record of the stream, side 0, meets the row of its key as it is then. Without a value it is dropped, and
    without a key as well, but for a left join.
    """

    def __init__(self, node: StreamTableJoin) -> None:
        stream, table = node.inputs
        self._node = node
        self._joiner = Called(node.joiner, node.name, key=node.key, left=stream.value, right=table.value)
        self._rows: dict[bytes, Any] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Remember a change of the table, or join a record of the stream."""
        at = None if change.key is None else key_bytes(self._node.key, change.key)
        if side == 1:
            if at is not None:
                self._rows.pop(at, None)
                if change.value is not None:
                    self._rows[at] = change.value
            return ()
        row = None if at is None else self._rows.get(at)
        if change.value is None or (row is None and self._node.how != "left"):
            return ()
        return (change._replace(value=self._joiner(change.key, change.value, row)),)


class JoinWithGlobalTable(Operator):
    """Each record meets the row whose key the selector makes of it, whatever the time of either."""

    def __init__(self, node: GlobalTableJoin, table: GlobalTable) -> None:
        stream, rows = node.inputs
        self._how = node.how
        self._table = table
        self._selector = called(node.selector, node)
        self._joiner = Called(node.joiner, node.name, key=stream.key, left=stream.value, right=rows.value)

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Join a record."""
        if change.value is None:
            return ()
        wanted = self._selector(change.key, change.value)
        row = None if wanted is None else self._table.find(wanted)
        if row is None and self._how != "left":
            return ()
        return (change._replace(value=self._joiner(change.key, change.value, row)),)


class JoinTables(Operator):
    """A row for each key that both tables have, or the left, or either. The time of a result is the later one of both
    rows'. Where nothing was and nothing is, nothing flows out.
    """

    def __init__(self, node: TableJoin) -> None:
        left, right = node.inputs
        self._key = node.key
        self._joiner = Called(node.joiner, node.name, key=node.key, left=left.value, right=right.value)
        self._needed = {"inner": (True, True), "left": (True, False), "outer": (False, False)}[node.how]
        # Of each side: key → value, timestamp.
        self._rows: tuple[dict[bytes, tuple[Any, int]], dict[bytes, tuple[Any, int]]] = ({}, {})

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Take a change of either side."""
        if change.key is None:
            return ()
        at = key_bytes(self._key, change.key)
        before, _ = self._rows[side].pop(at, (None, 0))
        if change.value is not None:
            self._rows[side][at] = (change.value, change.timestamp)
        other, time = self._rows[1 - side].get(at, (None, change.timestamp))
        new = self._joined(side, change.key, change.value, other)
        old = self._joined(side, change.key, before, other)
        if new is None and old is None:
            return ()
        return (change._replace(value=new, old=old, timestamp=max(time, change.timestamp)),)

    def _joined(self, side: int, key: Any, mine: Any, theirs: Any) -> Any:
        pair = (mine, theirs) if side == 0 else (theirs, mine)
        missing = [each is None for each in pair]
        if all(missing) or any(gone and needed for gone, needed in zip(missing, self._needed, strict=True)):
            return None
        return self._joiner(key, *pair)
