"""The third side of the comparison: many programs as one app, in one query of a real Spark.

A query costs seconds whatever is in it, so independent programs share one: each has topics of its own. They share the
number of partitions, the micro-batches and the restart, too; where a micro-batch ends in its records is each one's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ottla.streams import App
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.deployment import own_session
from ottla.streams.lowering.execution import Execution
from ottla.streams.lowering.query import Trigger, start_by_batch, stop
from ottla.streams.lowering.shipping import ship
from ottla.streams.lowering.silence import silence
from ottla.streams.lowering.topics import GivenTopics
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.sinks import ForEach, Print
from ottla.streams.plan.topology import Plan
from tests.agreement.program import Program, by_topic
from tests.agreement.sides import Row, as_headers


def plan_of(programs: Sequence[Program], *, called: bool) -> tuple[App, Plan]:
    """The plan of all programs; with `called` none of its functions can be read as an expression."""
    first = programs[0]
    app = App("plans", **dict(first.settings))
    for each in programs:
        each.build(app)
    plan = app.plan()
    return app, without_expressions(plan) if called else plan


def without_expressions(plan: Plan) -> Plan:
    """The same plan, whose functions must all be called."""
    found: dict[Node, Node] = {}
    for node in plan.nodes:
        changed = {each.name: _called(getattr(node, each.name), found) for each in fields(node)}
        found[node] = replace(node, **changed)
    return Plan(tuple(found.values()))


def _called(given: Any, known: dict[Node, Node]) -> Any:
    if isinstance(given, Function):
        return replace(given, expression=None, called_because="the test wants it", read=None)
    if isinstance(given, Node):
        return known[given]
    if isinstance(given, tuple) and given and isinstance(given[0], Function | Node):
        return tuple(_called(each, known) for each in given)
    return given


def by_spark(programs: Sequence[Program], directory: Path, *, called: bool = False) -> list[Row]:
    """What Spark writes of all programs."""
    first = programs[0]
    batches = [each.batches for each in programs]
    app, plan = plan_of(programs, called=called)
    ship(plan)
    spark = own_session(app.settings)
    spark.conf.set("spark.sql.shuffle.partitions", str(first.partitions))
    topics = GivenTopics(spark, directory / "topics")
    found: list[Row] = []
    given = by_topic([record for each in programs for record in each.records])

    def run(plan: Plan, numbers: Sequence[int]) -> None:
        for n in numbers:
            topics.give(plan.sources, by_topic([record for each in batches for record in each[n]]), 1)
        context = Context(
            spark, "plans", topics.read, first.partitions, first.updates, given=given, wants_old=wants_old(plan),
            dead_letters=app.settings.dead_letters,
        )  # fmt: skip
        execution = Execution(plan, context)
        handle = _handler(execution, found)
        with silence("plans"):
            query = start_by_batch(
                execution, "plans", (directory / "checkpoint").as_uri(), Trigger(available_now=True), handle
            )
            try:
                query.awaitTermination()
            finally:
                stop(query)

    count = len(batches[0])
    if first.restart:
        run(plan, range(first.restart))
        _, plan = plan_of(programs, called=called)
    run(plan, range(first.restart, count))
    return found


def _handler(execution: Execution, found: list[Row]) -> Callable[[Any, int], None]:
    def handle(batch: Any, number: int) -> None:
        for row in batch.toArrow().to_pylist():
            node = execution.outputs[row["output"]]
            if row["output"] not in execution.seen:
                found.append(
                    Row(row["topic"], row["key"], row["value"], row["timestamp"], as_headers(row["headers"]))
                )
                continue
            given = node.input if isinstance(node, ForEach | Print) else node
            seen = row[f"seen_{row['output']}"]
            key, value = (
                repr(None if plain is None else type.load(plain))
                for type, plain in ((given.key, seen["key"]), (given.value, seen["value"]))
            )
            found.append(Row(node.name, key, value, seen["timestamp"], as_headers(seen["headers"])))

    return handle
