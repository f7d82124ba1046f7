"""A micro-batch operator by operator: where a table shows one change a key and micro-batch.

B1  Each operator takes all that a micro-batch brings it before those who read it begin. What comes by several queues
    (the topics, and the operators with state before it) is taken in the order of times, as records of topics are.
B2  Of a table that is remembered the last change of each key flows out, from what was there before the first. A row
    that has come and gone again says nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.record import Record
from ottla.streams.errors import FunctionFailed
from ottla.streams.plan.joins import StreamTableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.sinks import SINKS
from ottla.streams.plan.sources import Source, TableSource
from ottla.streams.plan.tables import ToTable
from ottla.streams.plan.topology import Plan
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.order import taken
from ottla.streams.reference.sinks import RecordSink, TopicSink, Written


class Queued(NamedTuple):
    """A change, and where it waits: by what input, and of what topic or operator."""

    side: int
    queue: str
    change: Change


class ByBatch:
    """The operators of a plan, and which of them are tables that are remembered."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[Node],
        operators: Mapping[Node, Operator],
        sinks: Mapping[Node, TopicSink | RecordSink],
        *,
        native: bool = False,
    ) -> None:
        self._native = native
        self._nodes = nodes
        self._operators = operators
        self._sinks = sinks
        olds = wants_old(plan)
        self._collapsing = {
            each
            for each in nodes
            if each.is_table
            and each.stateful
            and (not isinstance(each, TableSource | ToTable) or each in olds)
        }

    def run(self, read: Sequence[tuple[Source, Change | Record]], now: int) -> list[Written]:
        """Run a micro-batch."""
        written = [Written(source, each, each) for source, each in read if isinstance(each, Record)]
        flown: dict[Node, list[Queued]] = {}
        for node in self._nodes:
            if isinstance(node, Source):
                given = [
                    Queued(0, f"topic {each.place[0]}", each)
                    for source, each in read
                    if source is node and isinstance(each, Change)
                ]
            else:
                given = [
                    each._replace(side=side)
                    for side, source in enumerate(node.inputs)
                    for each in flown.get(source, ())
                ]
            if isinstance(node, SINKS):
                written += [self._written(node, each.change) for each in given]
                continue
            flown[node] = self._flown(node, given, now)
            if node in self._sinks:
                written += [self._written(node, each.change) for each in flown[node]]
        return written

    def _written(self, node: Node, change: Change) -> Written:
        try:
            return self._sinks[node].write(change)
        except FunctionFailed as failed:
            raise failed.located(*change.place) from failed.__cause__

    def _flown(self, node: Node, given: list[Queued], now: int) -> list[Queued]:
        operator = self._operators[node]
        name = f"operator {node.name}"
        out = [Queued(0, name, each) for each in operator.begin(now)]
        for each in _in_order(node, given) if node.stateful else given:
            try:
                made = operator.take(each.side, each.change)
            except FunctionFailed as failed:
                raise failed.located(*each.change.place) from failed.__cause__
            queue = name if node.stateful else each.queue
            out += [Queued(0, queue, change) for change in made]
        out += [Queued(0, name, each) for each in operator.end()]
        if node not in self._collapsing:
            return out
        if self._native:  # Spark's own aggregation knows no headers
            out = [each._replace(change=each.change._replace(headers=())) for each in out]
        return _latest(node, out)


def _in_order(node: Node, given: list[Queued]) -> list[Queued]:
    queues: dict[tuple[int, str], list[Queued]] = {}
    for each in given:
        queues.setdefault((each.side, each.queue), []).append(each)
    # A table's changes first, at equal times.
    sides = sorted(queues.items(), key=lambda entry: entry[0][0], reverse=isinstance(node, StreamTableJoin))
    return list(taken([queue for _, queue in sides], lambda each: each.change.timestamp))


def _latest(node: Node, out: list[Queued]) -> list[Queued]:
    kept: dict[bytes | None, Queued] = {}
    for each in out:
        at = None if each.change.key is None else key_bytes(node.key, each.change.key)
        before = kept.pop(at, None)
        if before is not None:
            each = each._replace(change=each.change._replace(old=before.change.old))
        kept[at] = each
    return [each for each in kept.values() if each.change.value is not None or each.change.old is not None]
