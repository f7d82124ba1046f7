"""What goes into an operator, and what comes out of it.

Keys and values are plain, as Arrow has them: numbers, text, bytes, tuples for structs. What users' functions see is
made from that with their types, and made anew for each call, so that nothing a function changes changes the state.
"""

from typing import Any, NamedTuple


class Record:
    """A record, or a change of a table, on its way into an operator.

    `side` is the number of the input it came by, `at` its key as bytes, None for a null key. `old` is set for changes.
    `lineage` says where it comes from (`emission.py`), where that is wanted.
    """

    __slots__ = (
        "at",
        "headers",
        "key",
        "lineage",
        "offset",
        "old",
        "partition",
        "side",
        "timestamp",
        "topic",
        "value",
    )

    def __init__(
        self,
        side: int,
        key: Any,
        at: bytes | None,
        value: Any,
        timestamp: int,
        *,
        old: Any = None,
        headers: Any = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        lineage: Any = None,
    ) -> None:
        self.side = side
        self.key = key
        self.at = at
        self.value = value
        self.timestamp = timestamp
        self.old = old
        self.headers = headers
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.lineage = lineage

    def __repr__(self) -> str:
        return f"Record({self.side}, {self.key!r}, {self.value!r}, {self.timestamp})"


class Output(NamedTuple):
    """What flows out: a record, or a change with the value before it."""

    key: Any
    value: Any
    old: Any
    timestamp: int
    headers: Any = None
    lineage: Any = None
