"""Operators that bring two inputs together by key. `inputs` are (left, right)."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import StreamNode, TableNode
from ottla.streams.windows import JoinWindow


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamJoin(StreamNode):
    """Two streams: pairs of records of one key whose timestamps are near each other."""

    kind: ClassVar[str] = "join"
    stateful: ClassVar[bool] = True
    how: str  # inner, left or outer
    joiner: Function  # (key, left, right) -> value
    window: JoinWindow


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamTableJoin(StreamNode):
    """A stream and a table: each record meets the row of its key as it is when the record comes."""

    kind: ClassVar[str] = "table_join"
    stateful: ClassVar[bool] = True
    how: str  # inner or left
    joiner: Function  # (key, value, row) -> value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableJoin(StreamNode):
    """A stream and a global table (`inputs[1]`), looked up by whatever key the selector makes of a record."""

    kind: ClassVar[str] = "global_table_join"
    how: str  # inner or left
    selector: Function  # (key, value) -> key of the global table
    joiner: Function  # (key, value, row) -> value; key is the record's own


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableJoin(TableNode):
    """Two tables of one key type: the join of their rows, kept up to date from both sides."""

    kind: ClassVar[str] = "join_tables"
    stateful: ClassVar[bool] = True
    how: str  # inner, left or outer
    joiner: Function  # (key, left, right) -> value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ForeignKeyJoin(TableNode):
    """A table and the table that its rows refer to. The key is the left one's."""

    kind: ClassVar[str] = "foreign_key_join"
    stateful: ClassVar[bool] = True
    how: str  # inner or left
    extractor: Function  # (key, value) -> key of the right table, or None
    joiner: Function  # (key, left, right) -> value
