"""A table: the latest value of each key, and what can be said of it.

What flows between operators are its changes. A row that is deleted is a change whose value is None, which functions
never see. Functions are called with the value, or with key and value if they take two arguments.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.streams.errors import TopologyError
from ottla.streams.functions import function, predicate
from ottla.streams.joining import join_tables
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.node import Node
from ottla.streams.plan.tables import Suppress, TableFilter, TableMapValues, ToStream
from ottla.streams.said import Said, given_type
from ottla.streams.types.change import moved
from ottla.streams.types.struct import Pair, WindowedKey, bare
from ottla.streams.windows import TimeLimit, WindowClose

if TYPE_CHECKING:
    from ottla.streams.grouped import GroupedTable
    from ottla.streams.stream import Stream

Call = Callable[..., Any]


class Table(Said):
    """Rows by key: the latest value of each key."""

    _elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("count", "reduce", "aggregate"), "group first, as in table.group_by(…).count()"),
        "group_by_key": "a table is grouped by group_by(…)",
        **dict.fromkeys(
            ("map", "flat_map", "flat_map_values", "for_each", "peek", "select_key", "merge", "process"),
            "it is a stream's: table.to_stream() is one",
        ),
    }

    def filter(self, keep: Call, *, name: str | None = None) -> "Table":
        """Return the rows for which `keep` is True."""
        return self._filtered(keep, name, negated=False)

    def filter_not(self, drop: Call, *, name: str | None = None) -> "Table":
        """Return the rows for which `drop` is False."""
        return self._filtered(drop, name, negated=True)

    def _filtered(self, call: Call, name: str | None, *, negated: bool) -> "Table":
        held = predicate(call, self._offered, "filter_not" if negated else "filter")
        return self._then(self._add(TableFilter, name, predicate=held, negated=negated))

    def map_values(self, mapper: Call, *, value: Any = None, name: str | None = None) -> "Table":
        """Return the rows with the values that `mapper` returns."""
        found = function(mapper, self._offered, "map_values", given_type(value))
        return self._then(self._add(TableMapValues, name, mapper=found, value=found.result))

    def to_stream(
        self, selector: Call | None = None, *, key: Any = None, name: str | None = None
    ) -> "Stream":
        """Return the changes as records, with their keys or with those that `selector` returns."""
        from ottla.streams.stream import Stream

        stream = Stream(self._topology, self._add(ToStream, name))
        return stream if selector is None else stream.select_key(selector, key=key)

    def to(self, topic: str | Call, *, key: Any = None, value: Any = None, name: str | None = None) -> None:
        """Write the changes to a topic. A missing topic is created as compacted. A deleted row has a null value."""
        self.to_stream()._to(topic, key, value, None, name, compacted=True)

    def group_by(
        self, selector: Call, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> "GroupedTable":
        """Return the table grouped by the keys, with the values, that `selector` returns for its rows."""
        from ottla.streams.grouped import GroupedTable

        found = self._pairing(selector, "group_by", key, value)
        assert isinstance(found.result, Pair)
        new_key, new_value = (bare(each) for each in found.result.parts)
        node = self._add(Regroup, name, selector=found, key=new_key, value=moved(new_value))
        return GroupedTable(self._topology, node, new_value)

    def join(
        self,
        other: "Table",
        joiner: Call,
        *,
        on: Call | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> "Table":
        """Return the rows that are in both tables. With `on`, the other row has the key `on(key, value)`."""
        return self._then(join_tables(self, _table(other), "inner", joiner, on, value, name))

    def left_join(
        self,
        other: "Table",
        joiner: Call,
        *,
        on: Call | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> "Table":
        """Return the rows of this table, joined with rows of the other table or with None."""
        return self._then(join_tables(self, _table(other), "left", joiner, on, value, name))

    def outer_join(
        self, other: "Table", joiner: Call, *, value: Any = None, name: str | None = None
    ) -> "Table":
        """Return the rows that are in either table, joined with None where one is missing."""
        return self._then(join_tables(self, _table(other), "outer", joiner, None, value, name))

    def suppress(self, until: WindowClose | TimeLimit, *, name: str | None = None) -> "Table":
        """Return the table with its changes held back until a window closes, or for a time."""
        if isinstance(until, WindowClose) and not isinstance(self._node.key, WindowedKey):
            raise TopologyError(
                "suppress: there is no window to wait for", hint="use windowed_by before, or TimeLimit"
            )
        if not isinstance(until, WindowClose | TimeLimit):
            raise TopologyError(f"suppress: {until!r:.100} is neither WindowClose() nor TimeLimit(…)")
        return self._then(self._add(Suppress, name, until=until))

    def _then(self, node: Node) -> "Table":
        return Table(self._topology, node)


class GlobalTable(Said):
    """A table that is complete in every task, so that a stream can be joined with it by any key."""


def _table(given: object) -> Table:
    if isinstance(given, Table):
        return given
    raise TopologyError(
        f"join: a table is joined with a table, not with {given!r:.100}",
        hint="to_stream() makes a stream of a table",
    )
