"""Where records come from."""

import re
from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node, StreamNode, TableNode
from ottla.streams.types.serde import Serde


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source(Node):
    """Reads topics."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None  # instead of topics: a regular expression of their names
    key_serde: Serde
    value_serde: Serde
    timestamp: Function | None = None  # (key, value) -> milliseconds or datetime; None: the record's own
    starting: str = "earliest"  # where to begin when there is no checkpoint: earliest or latest


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamSource(Source, StreamNode):
    """app.stream: every record is a fact of its own."""

    kind: ClassVar[str] = "stream"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableSource(Source, TableNode):
    """app.table: a record replaces the one before it with the same key; a null value deletes it; a null key is
    dropped.
    """

    kind: ClassVar[str] = "table"
    stateful: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableSource(Source, TableNode):
    """app.global_table: the whole of a topic, to look up in by any key. Nothing flows out of it by itself."""

    kind: ClassVar[str] = "global_table"


def reads(source: Source, topic: str) -> bool:
    """Say whether a source reads a topic."""
    if source.pattern is not None:
        return re.fullmatch(source.pattern, topic) is not None
    return topic in source.topics
