"""Streams and tables that wait to be aggregated: by key, by key and window, or several together."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import function
from ottla.streams.plan.aggregates import Aggregate, Cogroup, TableAggregate
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.topology import Topology
from ottla.streams.said import Said, given_type
from ottla.streams.table import Table
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import WindowedKey, bare
from ottla.streams.types.type import Integer, Type
from ottla.streams.windows import HoppingWindow, SessionWindow, SlidingWindow, TumblingWindow, Window

Call = Callable[..., Any]
S = TypeVar("S", bound="GroupedStream")


class GroupedStream(Said):
    """A stream grouped by key, or by key and window. Records without a key or a value are ignored."""

    def __init__(
        self, topology: Topology, node: Node, window: Window | None = None, emit: str = "update"
    ) -> None:
        super().__init__(topology, node)
        self._window = window
        self._emit = emit

    def windowed_by(self, window: Window, *, emit: str = "update") -> "GroupedStream":
        """Return the same stream grouped by window as well.

        With emit="close" a window has one result, when stream time is past its end and its grace. Otherwise every
        record has a new result.
        """
        if not isinstance(window, TumblingWindow | HoppingWindow | SlidingWindow | SessionWindow):
            raise TopologyError(
                f"windowed_by: {window!r:.100} is no window", hint="for example TumblingWindow('5 minutes')"
            )
        if emit not in ("update", "close"):
            raise TopologyError(f"windowed_by: emit={emit!r} is neither 'update' nor 'close'")
        return GroupedStream(self._topology, self._node, window, emit)

    def count(self, *, name: str | None = None) -> Table:
        """Return the number of records of each key."""
        return self._aggregated("count", None, None, None, Integer(), name)

    def reduce(self, reducer: Call, *, name: str | None = None) -> Table:
        """Return for each key the result of `reducer(so_far, value)` over its values, starting with the first value."""
        value = self._node.value
        found = function(reducer, {"aggregate": value, "value": value}, "reduce", value, traced=False)
        if len(found.parameters) != 2:
            raise TopologyError("reduce takes a function of two arguments: what there is so far, and a value")
        merger = None
        if isinstance(self._window, SessionWindow):
            merger = function(reducer, {"aggregate": value, "other": value}, "reduce", value, traced=False)
        return self._aggregated("reduce", None, found, merger, value, name)

    def aggregate(
        self,
        initializer: Call,
        adder: Call,
        merger: Call | None = None,
        *,
        value: Any = None,
        name: str | None = None,
    ) -> Table:
        """Return for each key the result of `adder(key, value, so_far)` over its records; `initializer()` is the first.

        An adder with two parameters gets the value and the result so far. Session windows need
        `merger(key, one, other)`, which combines the results of two windows that become one.
        """
        first, result = initial(initializer, value)
        offered: dict[str, Type] = {**self._offered, "aggregate": result}
        adding = function(adder, offered, "aggregate", result, traced=False)
        merging = merged(merger, self._node.key, result, self._window)
        return self._aggregated("aggregate", first, adding, merging, result, name)

    def cogroup(self, adder: Call, *, value: Any) -> "Cogrouped":
        """Aggregate this stream together with other streams of the same key type; `value` is the type of the result."""
        return Cogrouped(self._topology, self._node, bare(type_of(value)), ()).cogroup(self, adder)

    def _aggregated(
        self,
        method: str,
        initializer: Function | None,
        adder: Function | None,
        merger: Function | None,
        value: Type,
        name: str | None,
    ) -> Table:
        node = self._add(
            Aggregate,
            name,
            key=windowed_key(self._node.key, self._window),
            value=value,
            method=method,
            initializer=initializer,
            adder=adder,
            merger=merger,
            window=self._window,
            emit=self._emit,
        )
        return Table(self._topology, node)


class Cogrouped(Said):
    """Several streams of one key type that are aggregated into one table."""

    def __init__(
        self,
        topology: Topology,
        node: Node,
        value: Type,
        streams: tuple[tuple[Node, Function], ...],
        window: Window | None = None,
    ) -> None:
        super().__init__(topology, node)
        self._value = value
        self._streams = streams
        self._window = window

    def cogroup(self, grouped: GroupedStream, adder: Call) -> "Cogrouped":
        """Return the same with one more stream; `adder(key, value, so_far)` adds its records."""
        self._same_app(grouped, "cogroup")
        if grouped._node.key != self._node.key:
            raise TypeMismatch(f"cogroup: the keys are {self._node.key} and {grouped._node.key}")
        offered: dict[str, Type] = {**grouped._offered, "aggregate": self._value}
        found = function(adder, offered, "cogroup", self._value, traced=False)
        streams = (*self._streams, (grouped._node, found))
        return Cogrouped(self._topology, self._node, self._value, streams, self._window)

    def windowed_by(self, window: Window) -> "Cogrouped":
        """Return the same streams grouped by window as well."""
        return Cogrouped(self._topology, self._node, self._value, self._streams, window)

    def aggregate(self, initializer: Call, merger: Call | None = None, *, name: str | None = None) -> Table:
        """Return for each key the result of the adders over its records, starting with `initializer()`."""
        first, _ = initial(initializer, self._value)
        node = self._add(
            Cogroup,
            name,
            inputs=tuple(node for node, _ in self._streams),
            key=windowed_key(self._node.key, self._window),
            value=self._value,
            initializer=first,
            adders=tuple(adder for _, adder in self._streams),
            merger=merged(merger, self._node.key, self._value, self._window),
            window=self._window,
        )
        return Table(self._topology, node)


class GroupedTable(Said):
    """A table grouped by other keys. A row that changes is removed from its old group and added to its new one."""

    def __init__(self, topology: Topology, node: Node, value: Type) -> None:
        super().__init__(topology, node)
        self._value = value

    def count(self, *, name: str | None = None) -> Table:
        """Return the number of rows of each group."""
        return self._aggregated("count", None, None, None, Integer(), name)

    def reduce(self, adder: Call, subtractor: Call, *, name: str | None = None) -> Table:
        """Return for each group the result over its values.

        `adder(so_far, value)` adds a value, `subtractor(so_far, value)` removes one.
        """
        offered = {"aggregate": self._value, "value": self._value}
        adding = function(adder, offered, "reduce", self._value, traced=False)
        removing = function(subtractor, offered, "reduce", self._value, traced=False)
        return self._aggregated("reduce", None, adding, removing, self._value, name)

    def aggregate(
        self, initializer: Call, adder: Call, subtractor: Call, *, value: Any = None, name: str | None = None
    ) -> Table:
        """Return for each group the result over its rows. `adder` and `subtractor` get key, value and result so far."""
        first, result = initial(initializer, value)
        offered: dict[str, Type] = {"key": self._node.key, "value": self._value, "aggregate": result}
        adding = function(adder, offered, "aggregate", result, traced=False)
        removing = function(subtractor, offered, "aggregate", result, traced=False)
        return self._aggregated("aggregate", first, adding, removing, result, name)

    def _aggregated(
        self,
        method: str,
        initializer: Function | None,
        adder: Function | None,
        subtractor: Function | None,
        value: Type,
        name: str | None,
    ) -> Table:
        node = self._add(
            TableAggregate,
            name,
            value=value,
            method=method,
            initializer=initializer,
            adder=adder,
            subtractor=subtractor,
        )
        return Table(self._topology, node)


def initial(initializer: Call, value: Any) -> tuple[Function, Type]:
    """Return the function that begins an aggregate, and the type of aggregates: the one given, or of what it
    returns.
    """
    wanted = given_type(value)
    if wanted is None:
        wanted = _type_of_result(initializer)
    return function(initializer, {}, "initializer", wanted, traced=False), wanted


def _type_of_result(initializer: Call) -> Type:
    if not callable(initializer):
        raise TopologyError(
            f"aggregate takes a function that returns the first aggregate, and was given {initializer!r:.100}",
            hint=f"give a function: lambda: {initializer!r:.100}",
        )
    if not isinstance(initializer, type):
        hint = getattr(initializer, "__annotations__", {}).get("return")
        if hint is not None:
            return function(initializer, {}, "initializer", traced=False).result
        example = initializer()
        if example is None or isinstance(example, list | dict | set | tuple):
            raise TopologyError(
                f"initializer: {example!r:.100} does not say what the aggregates will be",
                hint="give the type, as in value=list[str]",
            )
        return bare(type_of(type(example)))
    return bare(type_of(initializer))


def merged(merger: Call | None, key: Type, value: Type, window: Window | None) -> Function | None:
    """Return the function that makes one aggregate of those of two sessions, where there are sessions."""
    if merger is None:
        if isinstance(window, SessionWindow):
            raise TopologyError(
                "aggregate: two sessions may become one, and nothing says how their aggregates do",
                hint="give a merger: a function of key and two aggregates",
            )
        return None
    if not isinstance(window, SessionWindow):
        raise TopologyError("aggregate: a merger is for session windows alone")
    return function(merger, {"key": key, "aggregate": value, "other": value}, "merger", value, traced=False)


def windowed_key(key: Type, window: Window | None) -> Type:
    """Return the type of the keys of what is aggregated by windows."""
    if window is None:
        return key
    if isinstance(window, SessionWindow):
        return WindowedKey(key, session=True)
    return WindowedKey(
        key, size_ms=window.difference_ms if isinstance(window, SlidingWindow) else window.size_ms
    )
