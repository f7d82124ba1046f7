"""Operators on tables, and between tables and streams."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import StreamNode, TableNode
from ottla.streams.windows import TimeLimit, WindowClose


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToTable(TableNode):
    """A stream read as a table: records with a null key are dropped, a null value deletes."""

    kind: ClassVar[str] = "to_table"
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToStream(StreamNode):
    """The changes of a table as records: key and new value, tombstones included."""

    kind: ClassVar[str] = "to_stream"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableFilter(TableNode):
    """Rows for which the predicate holds; for one that no longer does, a tombstone."""

    kind: ClassVar[str] = "table_filter"
    predicate: Function  # (key, value) -> bool, never called for a tombstone
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableMapValues(TableNode):
    """A new value for each row."""

    kind: ClassVar[str] = "table_map_values"
    mapper: Function  # (key, value) -> value, never called for a tombstone


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Suppress(TableNode):
    """Holds changes back: until a window has closed for good, or until a time has passed."""

    kind: ClassVar[str] = "suppress"
    stateful: ClassVar[bool] = True
    until: WindowClose | TimeLimit
