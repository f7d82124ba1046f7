"""What of a topology a checkpoint depends on, as plain data.

Spark finds the state of an operator by its place in the query, and the values in it have no names. So state of another
operator, or of other types, would be read as if it were right.

G1  The shape has everything that says what is in the state: which operators there are, in which order; the types of
    keys and values that they keep, fields in their order; how an aggregate is made; windows, spans and stores.
G2  What is not in the state is not in the shape: functions, the types of results that nobody keeps, limits that are
    looked at anew each time.
G3  Two changes of a type are no change of what is kept: what may be None now and might not before, and members that an
    Enum has got.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import quote

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.stateful.suppress import patience_of
from ottla.streams.plan.aggregates import Aggregate, Cogroup, TableAggregate
from ottla.streams.plan.distinct import Distinct
from ottla.streams.plan.joins import ForeignKeyJoin, StreamJoin, StreamTableJoin, TableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sources import GlobalTableSource, Source, TableSource
from ottla.streams.plan.tables import Suppress, ToTable
from ottla.streams.stores import Store, WindowStore
from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import Array, Dictionary, Nullable, Type
from ottla.streams.windows import HoppingWindow, SessionWindow, SlidingWindow, TumblingWindow

VERSION = 2

Shape = dict[str, Any]


def shape(nodes: Sequence[Node], order: Sequence[str], partitions: int, context: Context) -> Shape:
    """Return the shape of a topology: `nodes` are its sources and operators with state, `order` is the query's."""
    operators = [_described(each, context) for each in nodes]
    return {
        "version": VERSION,
        "partitions": partitions,
        "updates": context.updates,
        "order": list(order),
        "operators": operators,
    }


def _described(node: Node, context: Context) -> Shape:
    found: Shape = {"name": node.name, "kind": node.kind}
    if isinstance(node, Source):
        found["topics"] = node.pattern or ",".join(node.topics)
    if not node.stateful:
        return found
    if isinstance(node, TableSource | ToTable):
        keeps = context.wants_old is None or node in context.wants_old
        found["state"] = "last values" if keeps else "none"
    elif context.native:
        found["state"] = "native"
    found["key"] = ", ".join(dict.fromkeys(kept(each.key) for each in node.inputs or (node,)))
    return found | dict(_kept_values(node)) | dict(_terms(node))


def _kept_values(node: Node) -> Iterator[tuple[str, str]]:
    """What values are in the state of an operator."""
    if isinstance(node, StreamJoin | TableJoin | ForeignKeyJoin | StreamTableJoin):
        left, right = node.inputs
        if not isinstance(node, StreamTableJoin):
            yield "left", kept(left.value)
        yield "right", kept(right.value)
    if isinstance(
        node, Aggregate | Cogroup | TableAggregate | Suppress | TableSource | ToTable | ForeignKeyJoin
    ):
        yield "value", kept(node.value)
    if isinstance(node, Process):
        for each in node.stores:
            yield f"store {each.name}", _store(each)
        yield "stores", ", ".join(each.name for each in node.stores)


# A checkpoint holds these words, so they stay as they are.
_WINDOW_NAMES: dict[type, str] = {
    TumblingWindow: "Tumbling",
    HoppingWindow: "Hopping",
    SlidingWindow: "Sliding",
    SessionWindow: "Session",
}


def _store(store: Store | WindowStore) -> str:
    span = (
        f"retention {store.retention_ms} ms" if isinstance(store, WindowStore) else f"ttl {store.ttl_ms} ms"
    )
    return f"{type(store).__name__} of {kept(store.key_type)} → {kept(store.value_type)}, {span}"


def _terms(node: Node) -> Iterator[tuple[str, Any]]:
    """What else the state of an operator is made by."""
    if len(node.inputs) > 1:
        yield "inputs", "; ".join(", ".join(_origins(each)) for each in node.inputs)
    for name in ("how", "method", "emit"):
        if hasattr(node, name):
            yield name, getattr(node, name)
    window = getattr(node, "window", None)
    if window is not None:
        spans = (f"{each.name}={getattr(window, each.name)}" for each in fields(window))
        name = _WINDOW_NAMES.get(type(window), type(window).__name__)
        yield "window", f"{name}({', '.join(each for each in spans if '_ms=' in each)})"
    if isinstance(node, Distinct):
        yield "span", node.within_ms
    if isinstance(node, Suppress):
        patience = patience_of(node)
        yield (
            "wait",
            f"{patience.wait_ms} ms after {'the end of its window' if patience.final else 'a change'}",
        )
    if isinstance(node, Process):
        yield "clock", "wall" if getattr(node.processor(), "wall_clock", False) else "stream"


def _origins(node: Node) -> list[str]:
    """The nearest sources and operators with state that an input comes from."""
    if isinstance(node, GlobalTableSource):
        return []
    if node.stateful or isinstance(node, Source):
        return [node.name]
    return list(dict.fromkeys(name for each in node.inputs for name in _origins(each)))


def kept(type: Type) -> str:
    """Return what is in the state for values of a type: as Spark calls it, but to the last thing that matters."""
    if isinstance(type, Nullable):
        return f"{kept(type.of)}?"
    if isinstance(type, Array):
        return f"array<{kept(type.of)}>"
    if isinstance(type, Dictionary):
        return f"map<{kept(type.key)},{kept(type.value)}>"
    if isinstance(type, Struct):
        return f"struct<{','.join(f'{quote(each.name)}:{kept(each.type)}' for each in type.fields)}>"
    if isinstance(type, Pair):
        return f"tuple<{','.join(kept(each) for each in type.parts)}>"
    if isinstance(type, WindowedKey):
        return f"windowed<{kept(type.of)}>"
    if isinstance(type, Choice):
        return f"enum({','.join(quote(each, safe='') for each in type.texts())})"
    if isinstance(type, Anything):
        return "anything"
    return type.ddl()


_ENUM = re.compile(r"enum\(([^()]*)\)")


def difference(found: Shape, wanted: Shape) -> str | None:
    """Say the first thing in which what is wanted cannot go on with what was found; None where it can."""
    if found.get("version") != wanted["version"]:
        return "another version of Ottla wrote it, whose state has another form"
    if found["partitions"] != wanted["partitions"]:
        return f"its state is in {found['partitions']} partitions, not {wanted['partitions']}"
    if found["updates"] != wanted["updates"]:
        return f"updates is {wanted['updates']!r}, and was {found['updates']!r}"
    was = {each["name"]: each for each in found["operators"]}
    now = {each["name"]: each for each in wanted["operators"]}
    for name in was.keys() - now.keys():
        return f"{name} ({was[name]['kind']}) is gone"
    for name in now.keys() - was.keys():
        return f"{name} ({now[name]['kind']}) is new"
    for name, each in now.items():
        for field in [*each, *(was[name].keys() - each.keys())]:
            before, after = was[name].get(field), each.get(field)
            if not _goes_on(before, after):
                return f"{name} has another {field}: {_said(before)} then, {_said(after)} now"
    return None if found["order"] == wanted["order"] else "its operators stand in another order"


def _said(given: Any) -> Any:
    return "none" if given is None or given == "" else given


def _goes_on(before: Any, after: Any) -> bool:
    if before == after or not (isinstance(before, str) and isinstance(after, str)):
        return bool(before == after)
    pairs = list(zip(_ENUM.findall(before), _ENUM.findall(after), strict=False))
    if any(set(old.split(",")) - set(new.split(",")) for old, new in pairs):
        return False
    return _is_wider(_ENUM.sub("enum", before), _ENUM.sub("enum", after))


def _is_wider(before: str, after: str) -> bool:
    """Whether one text is the other with nothing but marks of what may be None put in."""
    at = 0
    for letter in after:
        if at < len(before) and before[at] == letter:
            at += 1
        elif letter != "?":
            return False
    return at == len(before)
