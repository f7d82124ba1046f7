"""Who computes what a function says: Spark by itself, as an expression, or Python, and then why.

C1  Python computes what cannot be read as an expression, and all that keeps state, looks up rows, or looks at records.
C2  Behind an operator that keeps state Python is at work already, so it does the paths on from there as well, up to the
    next such operator.
C3  Where the paths of a source part, all of them are one pass over its records: Spark's own if there is nothing on them
    but what Spark can do beside one another, and nothing that keeps state at the end of one; else Python's.

`lowering` does what is said here: `execution.py`, and who it asks.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from ottla.streams.plan.function import Function
from ottla.streams.plan.joins import GlobalTableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import SINKS, ForEach, To
from ottla.streams.plan.sources import GlobalTableSource, Source, TableSource
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Peek,
    Repartition,
    SelectKey,
)
from ottla.streams.plan.tables import TableFilter, TableMapValues, ToTable
from ottla.streams.plan.topology import Plan, upstream
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.struct import Anything, WindowedKey
from ottla.streams.types.walk import has_anything, has_odd_names, has_spellings

# Operators that are nothing but their functions. The others call them, whatever they are.
_BY_SPARK = (Branch, Filter, FlatMap, FlatMapValues, Map, MapValues, SelectKey, TableFilter, TableMapValues)
# Those that Spark does beside one another, where paths part.
_BESIDE = (Branch, Filter, Map, MapValues, SelectKey)
_THROUGH = (Merge, Repartition)
_COLUMNS = ("string", "bytes", "boolean", "short", "integer", "long")


def functions_of(node: Node) -> Iterator[Function]:
    """Yield the user's functions that an operator has."""
    for each in fields(node):
        found = getattr(node, each.name)
        for one in found if isinstance(found, tuple) else (found,):
            if isinstance(one, Function):
                yield one


def encodable(given: Serde) -> bool:
    """Return whether Spark can write it."""
    type = given.type
    if given.format == "windowed":
        assert isinstance(type, WindowedKey)
        return encodable(serde(type.of))
    if given.format != "json":
        return given.format in _COLUMNS
    # As a whole it is kept as the text it is; inside of others Spark takes it for text.
    return isinstance(type, Anything) or not (has_anything(type) or has_odd_names(type))


def called_because(node: Node) -> str | None:
    """Return why Python must do an operator, wherever it stands; "" where a function of it cannot be read."""
    if any(each.expression is None for each in functions_of(node)) and isinstance(
        node, (*_BY_SPARK, Source, To)
    ):
        return ""
    if isinstance(node, Map | FlatMap | SelectKey) and has_spellings(node.key):
        return "equal keys are to look alike"
    if isinstance(node, To):
        other = next((each for each in (node.key_serde, node.value_serde) if not encodable(each)), None)
        return None if other is None else f"{other} is written by Python"
    if isinstance(node, (*_BY_SPARK, Source)):
        return None
    if isinstance(node, Peek | ForEach | Process):
        return "it may do anything"
    if isinstance(node, GlobalTableJoin):
        return "rows are looked up by Python"
    return "what keeps state is done by Python" if node.stateful else "changes of tables are moved by Python"


class Reader(NamedTuple):
    """Who reads an operator: another one, one that keeps state, or an end of the topology."""

    kind: str  # operator, stage or end
    node: Node


class Computing:
    """Which operators of a plan are done by Python because of where they stand."""

    def __init__(self, plan: Plan, *, has_dead_letters: bool = False, native: bool = False) -> None:
        self._ends = plan.sinks or plan.loose_ends
        needed = {each for end in self._ends for each in upstream(end)}
        self._nodes = [each for each in plan.nodes if each in needed]
        olds = wants_old(plan)
        keeping = [each for each in self._nodes if each.stateful]
        self._native = set(keeping) if native else set()
        self._stages = {
            each
            for each in keeping
            if not native and (not isinstance(each, TableSource | ToTable) or each in olds)
        }
        self._because: dict[Node, str] = {}
        for node in self._nodes:
            if isinstance(node, Source) and not isinstance(node, GlobalTableSource):
                self._out_of_source(node, has_dead_letters=has_dead_letters)
            if node in self._stages:
                self._by_python(node, f"it is behind {node.name}, which keeps state")
            elif node in self._native:
                self._along(node, alone=True)

    def because_of_place(self, node: Node) -> str | None:
        """Return why Python does an operator that Spark could do elsewhere; None where it does not."""
        return self._because.get(node)

    def is_called(self, node: Node) -> bool:
        """Return whether Python does an operator."""
        return called_because(node) is not None or node in self._because

    def _readers(self, node: Node) -> list[Reader]:
        found = [Reader("end", node)] if node in self._ends and not isinstance(node, SINKS) else []
        for each in self._nodes:
            if each in self._native:
                continue
            kind = "stage" if each in self._stages else "end" if isinstance(each, SINKS) else "operator"
            found += [Reader(kind, each) for one in each.inputs if one is node]
        return found

    def _reaches_stage(self, node: Node) -> bool:
        return node in self._stages or any(
            kind == "stage" or (kind == "operator" and self._reaches_stage(each))
            for kind, each in self._readers(node)
        )

    def _out_of_source(self, source: Source, *, has_dead_letters: bool) -> None:
        alone = not self._reaches_stage(source)
        if not has_dead_letters:
            # What a table of a topic is read for is the stage that it is.
            if source not in self._stages:
                self._along(source, alone=alone)
            return
        if alone and source.timestamp is None and self._in_the_way(source) is None:
            return
        because = "records that cannot be read leave in between, for the dead letters"
        self._because[source] = because
        if source not in self._stages:
            self._by_python(source, because)

    def _along(self, node: Node, *, alone: bool) -> None:
        """Follow a path as long as it is one: each operator on it is done by itself."""
        readers = self._readers(node)
        while len(readers) == 1 and readers[0].kind == "operator":
            node = readers[0].node
            readers = self._readers(node)
        if len(readers) < 2:
            return
        in_the_way = self._in_the_way(node)
        if not alone:
            self._by_python(node, f"paths part at {node.name}, and one leads to what keeps state")
        elif in_the_way is not None:
            self._by_python(node, f"paths part at {node.name}, and {in_the_way.name} is done by Python")

    def _in_the_way(self, node: Node) -> Node | None:
        """Return what, on the paths from a node, Spark cannot do beside the rest."""
        if node.is_table:
            return node
        for kind, each in self._readers(node):
            if kind == "end" and (not isinstance(each, To) or called_because(each) is None):
                continue
            if kind != "operator" or not isinstance(each, (*_BESIDE, *_THROUGH)):
                return each
            if isinstance(each, _BESIDE) and called_because(each) is not None:
                return each
            if (found := self._in_the_way(each)) is not None:
                return found
        return None

    def _by_python(self, node: Node, because: str) -> None:
        for kind, each in self._readers(node):
            if kind == "stage" or each is node:
                continue
            self._because.setdefault(each, because)
            if kind == "operator":
                self._by_python(each, because)
