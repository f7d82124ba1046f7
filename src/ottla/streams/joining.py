"""How joins are said: who may be joined with whom, and what the joiner gets."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import function
from ottla.streams.plan.function import Function
from ottla.streams.plan.joins import ForeignKeyJoin, GlobalTableJoin, StreamJoin, StreamTableJoin, TableJoin
from ottla.streams.said import Said, given_type
from ottla.streams.types.type import Nullable, Type
from ottla.streams.windows import JoinWindow
from ottla.streams.windows import within as window_of

if TYPE_CHECKING:
    from ottla.streams.stream import Stream
    from ottla.streams.table import GlobalTable, Table

Call = Callable[..., Any]


def join_streams(
    left: "Stream", right: "Stream", how: str, joiner: Call, within: Any, value: Any, name: str | None
) -> StreamJoin:
    """Two streams, by key, within a window."""
    if within is None:
        raise TopologyError(
            "join: two streams are joined within a span of time", hint="for example within='5 minutes'"
        )
    _by_key(left, right)
    window = within if isinstance(within, JoinWindow) else window_of(within)
    found = _joiner(left, right, joiner, value, left_may_miss=how == "outer", right_may_miss=how != "inner")
    return left._add(
        StreamJoin,
        name,
        inputs=(left._node, right._node),
        value=found.result,
        how=how,
        joiner=found,
        window=window,
    )


def join_with_table(
    left: "Stream", right: "Table", how: str, joiner: Call, value: Any, name: str | None
) -> StreamTableJoin:
    """A stream and a table, by key."""
    if how == "outer":
        raise TopologyError("join: a stream and a table have no outer join", hint="use left_join")
    _by_key(left, right)
    found = _joiner(left, right, joiner, value, right_may_miss=how == "left")
    return left._add(
        StreamTableJoin, name, inputs=(left._node, right._node), value=found.result, how=how, joiner=found
    )


def join_with_global_table(
    left: "Stream",
    right: "GlobalTable",
    how: str,
    joiner: Call,
    on: Call | None,
    value: Any,
    name: str | None,
) -> GlobalTableJoin:
    """A stream and a global table, by whatever the selector makes of a record."""
    if how == "outer":
        raise TopologyError("join: a stream and a global table have no outer join", hint="use left_join")
    left._same_app(right, "join")
    if on is None:
        if left._node.key != right._node.key:
            raise TypeMismatch(
                f"join: the keys are {left._node.key} and {right._node.key}",
                hint="say which key to look up: on=lambda key, value: …",
            )
        on = _own_key
    selector = function(on, left._offered, "join: on", right._node.key)
    found = _joiner(left, right, joiner, value, right_may_miss=how == "left")
    return left._add(
        GlobalTableJoin,
        name,
        inputs=(left._node, right._node),
        value=found.result,
        how=how,
        selector=selector,
        joiner=found,
    )


def join_tables(
    left: "Table", right: "Table", how: str, joiner: Call, on: Call | None, value: Any, name: str | None
) -> "TableJoin | ForeignKeyJoin":
    """Two tables, by key or by a key that the rows of the left one refer to."""
    left._same_app(right, "join")
    found = _joiner(left, right, joiner, value, left_may_miss=how == "outer", right_may_miss=how != "inner")
    inputs = (left._node, right._node)
    if on is None:
        _by_key(left, right)
        return left._add(TableJoin, name, inputs=inputs, value=found.result, how=how, joiner=found)
    if how == "outer":
        raise TopologyError("join: there is no outer join by a foreign key", hint="use left_join")
    extractor = function(on, left._offered, "join: on", right._node.key)
    return left._add(
        ForeignKeyJoin, name, inputs=inputs, value=found.result, how=how, extractor=extractor, joiner=found
    )


def _own_key(key: Any, value: Any) -> Any:
    return key


def _by_key(left: Said, right: Said) -> None:
    left._same_app(right, "join")
    if left._node.key != right._node.key:
        raise TypeMismatch(
            f"join: the keys of {left.name} are {left._node.key}, those of {right.name} are {right._node.key}",
            hint="bring them together with select_key first",
        )


def _joiner(
    left: Said,
    right: Said,
    joiner: Call,
    value: Any,
    *,
    left_may_miss: bool = False,
    right_may_miss: bool = False,
) -> Function:
    offered: dict[str, Type] = {"key": left._node.key}
    offered["left"] = Nullable(left._node.value) if left_may_miss else left._node.value
    offered["right"] = Nullable(right._node.value) if right_may_miss else right._node.value
    return function(joiner, offered, "join", given_type(value))
