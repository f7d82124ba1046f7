"""A topology in words, and as a picture that Mermaid draws.

word-count
  stream-1           lines                          string → string
  flat_map_values-1  ← stream-1                     string → string   as an expression
  select_key-1       ← flat_map_values-1            string → string   Python at app.py:7 (it has an f-string)
  aggregate-1        ← select_key-1                 string → bigint   keeps state

What is Python is called record by record, and in brackets is why; what is an expression Spark computes by itself.
"""

from collections.abc import Iterator
from dataclasses import fields

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import To
from ottla.streams.plan.sources import GlobalTableSource, Source
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    SelectKey,
)
from ottla.streams.plan.tables import TableFilter, TableMapValues
from ottla.streams.plan.topology import Plan
from ottla.streams.types.walk import has_anything


def described(name: str, plan: Plan) -> str:
    """Return the words and the picture."""
    return f"{name}\n{words(plan)}\n{mermaid(plan)}"


def words(plan: Plan) -> str:
    """Return a line for each operator: its name, what it reads, its types, and how it is computed."""
    rows = [(each.name, _reads(each), _types(each), _how(each)) for each in plan.nodes]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
        lines.append("  " + "  ".join([*cells, row[3]]).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _reads(node: Node) -> str:
    if isinstance(node, Source):
        return node.pattern or ", ".join(node.topics)
    return "← " + ", ".join(each.name for each in node.inputs)


def _types(node: Node) -> str:
    if isinstance(node, To):
        return f"→ {node.topic or 'by record'} ({node.key_serde}, {node.value_serde})"
    return f"{node.key} → {node.value}"


# Operators that are nothing but their functions. The others call them, whatever they are.
BY_SPARK = (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    SelectKey,
    Source,
    TableFilter,
    TableMapValues,
    To,
)


def _how(node: Node) -> str:
    notes = []
    if node.stateful:
        notes.append("keeps state")
    functions = list(functions_of(node))
    called = [each for each in functions if _is_called(node, each)]
    if called:
        notes.append(f"Python at {', '.join(dict.fromkeys(_called(each) for each in called))}")
    elif functions:
        notes.append("as an expression")
    return ", ".join(notes)


def _is_called(node: Node, function: Function) -> bool:
    """Whether Python calls a function: because of what it does, or because all of the operator is done by Python."""
    # Where nothing is known of a key, Python sees to it that equal ones are written alike.
    by_python = isinstance(node, Map | FlatMap | SelectKey) and has_anything(node.key)
    return function.expression is None or by_python or not isinstance(node, BY_SPARK)


def _called(function: Function) -> str:
    return f"{function.place} ({function.called_because})" if function.called_because else function.place


def functions_of(node: Node) -> Iterator[Function]:
    """Yield the user's functions that an operator has."""
    for each in fields(node):
        found = getattr(node, each.name)
        for one in found if isinstance(found, tuple) else (found,):
            if isinstance(one, Function):
                yield one


def mermaid(plan: Plan) -> str:
    """Return a flowchart: topics as drums, operators with state as boxes with double sides."""
    lines = ["flowchart LR"]
    numbers = {node: f"n{n}" for n, node in enumerate(plan.nodes)}
    topics: dict[str, str] = {}

    def topic(name: str) -> str:
        if name not in topics:
            topics[name] = f"t{len(topics)}"
            lines.append(f'    {topics[name]}[("{_quoted(name)}")]')
        return topics[name]

    for node, number in numbers.items():
        opening, closing = ("[[", "]]") if node.stateful else ("(", ")")
        lines.append(f'    {number}{opening}"{_quoted(node.name)}"{closing}')
        if isinstance(node, Source):
            read = [topic(name) for name in node.topics or (str(node.pattern),)]
            lines.extend(f"    {each} --> {number}" for each in read)
        for each in node.inputs:
            arrow = "-.->" if isinstance(each, GlobalTableSource) else "-->"
            lines.append(f"    {numbers[each]} {arrow} {number}")
        if isinstance(node, To):
            lines.append(f"    {number} --> {topic(node.topic or 'by record')}")
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")
