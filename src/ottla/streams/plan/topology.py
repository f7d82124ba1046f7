"""A whole topology: its operators in the order in which they were said, and what can be asked about them.

It grows while a program says what it wants, and is frozen into a Plan when something is to run.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from ottla.streams.errors import TopologyError
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import SINKS, To
from ottla.streams.plan.sources import GlobalTableSource, Source

N = TypeVar("N", bound=Node)


class Topology:
    """The operators that were said so far."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._counts: Counter[str] = Counter()

    def name(self, kind: str, given: str | None) -> str:
        """Return the name of a new operator: the one it is given, or a number after what it is."""
        if given is not None:
            if not re.fullmatch(r"[\w.-]{1,200}", given):
                raise TopologyError(f"{given!r} is no name: letters, digits, '.', '_' and '-' make one")
            if given in self._nodes:
                raise TopologyError(
                    f"there are two operators {given!r}", hint="names are unique within an app"
                )
            return given
        while True:
            self._counts[kind] += 1
            name = f"{kind}-{self._counts[kind]}"
            if name not in self._nodes:
                return name

    def add(self, node: N) -> N:
        """Take an operator in."""
        self._nodes[node.name] = node
        return node

    def plan(self) -> "Plan":
        """Return what there is now, with every function as it reads now."""
        found: dict[Node, Node] = {}
        for node in self._nodes.values():
            found[node] = _as_it_reads(node, found)
        return Plan(tuple(found.values()))


def _as_it_reads(node: N, known: dict[Node, Node]) -> N:
    """The operator itself, or one like it where a function or what it reads is another by now."""
    changed: dict[str, Any] = {}
    for each in fields(node):
        before = getattr(node, each.name)
        after = _read_again(before, known)
        if after is not before:
            changed[each.name] = after
    return replace(node, **changed) if changed else node


def _read_again(given: Any, known: dict[Node, Node]) -> Any:
    if isinstance(given, Function):
        return given.read_again()
    if isinstance(given, Node):
        return known[given]
    if isinstance(given, tuple):
        after = tuple(_read_again(each, known) for each in given)
        return given if all(one is other for one, other in zip(given, after, strict=True)) else after
    return given


@dataclass(frozen=True, slots=True)
class Plan:
    """A topology that changes no more. Inputs stand before whoever reads them."""

    nodes: tuple[Node, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where records come from."""
        return tuple(each for each in self.nodes if isinstance(each, Source))

    @property
    def sinks(self) -> tuple[Node, ...]:
        """Where records go."""
        return tuple(each for each in self.nodes if isinstance(each, SINKS))

    @property
    def writes(self) -> tuple[To, ...]:
        """The sinks that are topics."""
        return tuple(each for each in self.nodes if isinstance(each, To))

    @property
    def loose_ends(self) -> tuple[Node, ...]:
        """Operators that are no sinks and that nobody reads."""
        read = {each for node in self.nodes for each in node.inputs}
        return tuple(
            each
            for each in self.nodes
            if each not in read and not isinstance(each, (*SINKS, GlobalTableSource))
        )

    def readers(self, node: Node) -> tuple[Node, ...]:
        """Return who reads what flows out of an operator."""
        return tuple(each for each in self.nodes if node in each.inputs)


def upstream(node: Node) -> Iterator[Node]:
    """Yield an operator and all that it depends on: inputs first, and those that are read twice, twice."""
    for each in node.inputs:
        yield from upstream(each)
    yield node
