"""A topology in words, and as a picture that Mermaid draws.

word-count
  stream-1           lines                          string → string
  flat_map_values-1  ← stream-1                     string → string   as an expression
  select_key-1       ← flat_map_values-1            string → string   Python at app.py:7 (it has an f-string)
  aggregate-1        ← select_key-1                 string → bigint   keeps state

What is Python is called record by record, and in brackets is why: what a function says, or where its operator stands
(`computing.py`). What is an expression Spark computes by itself.
"""

from ottla.streams.computing import Computing, called_because, functions_of
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import To
from ottla.streams.plan.sources import GlobalTableSource, Source
from ottla.streams.plan.topology import Plan


def described(name: str, plan: Plan, computing: Computing) -> str:
    """Return the words and the picture."""
    return f"{name}\n{words(plan, computing)}\n{mermaid(plan)}"


def words(plan: Plan, computing: Computing) -> str:
    """Return a line for each operator: its name, what it reads, its types, and how it is computed."""
    rows = [(each.name, _reads(each), _types(each), _how(each, computing)) for each in plan.nodes]
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


def _how(node: Node, computing: Computing) -> str:
    notes = ["keeps state"] if node.stateful else []
    functions = list(functions_of(node))
    told = [_called(each, node, computing) for each in functions] if computing.is_called(node) else []
    if isinstance(node, Process):
        told.append(_place(node.place, called_because(node)))
    if told:
        notes.append(f"Python at {', '.join(dict.fromkeys(told))}")
    elif functions:
        notes.append("as an expression")
    return ", ".join(notes)


def _called(function: Function, node: Node, computing: Computing) -> str:
    always, there = called_because(node), computing.because_of_place(node)
    # What a function says itself matters where nothing else would have it called.
    reasons = [always] if always else [each for each in (function.called_because, there) if each]
    return _place(function.place, "; ".join(reasons) or "as another function of its operator")


def _place(place: str, because: str | None) -> str:
    return f"{place} ({because})" if because else place


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
