"""A micro-batch operator by operator: where a table shows one change a key and micro-batch.

B1  Each operator that remembers takes all that a micro-batch brings it before those who read it begin. What comes by
    several queues (the topics, and the operators that remember before it) is taken in the order of times, as records of
    topics are.
B2  What it makes goes through operators without state to the next that remember, and to the ends: one record all its
    way before the next begins.
B3  Of a table that is remembered the last change of each key flows out, from what was there before the first. A row
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
        readers: Mapping[Node, Sequence[tuple[Node, int]]],
        *,
        native: bool = False,
    ) -> None:
        self._native = native
        self._nodes = nodes
        self._operators = operators
        self._sinks = sinks
        self._readers = readers
        olds = wants_old(plan)
        self._remembering = {
            each
            for each in nodes
            if each.stateful and (not isinstance(each, TableSource | ToTable) or each in olds)
        }

    def run(self, read: Sequence[tuple[Source, Change | Record]], now: int) -> list[Written]:
        """Run a micro-batch."""
        written = [Written(source, each, each) for source, each in read if isinstance(each, Record)]
        waiting: dict[Node, list[Queued]] = {each: [] for each in self._nodes}
        for source, each in read:
            if isinstance(each, Change):
                waiting[source].append(Queued(0, f"topic {each.place[0]}", each))
        for node in self._nodes:
            if isinstance(node, Source) or node in self._remembering:
                for flown in self._flown(node, waiting[node], now):
                    self._flow(node, flown, waiting, written)
        return written

    def _flow(
        self, node: Node, flown: Queued, waiting: dict[Node, list[Queued]], written: list[Written]
    ) -> None:
        if node in self._sinks and not isinstance(node, SINKS):
            written.append(self._written(node, flown.change))
        for reader, side in self._readers[node]:
            given = flown._replace(side=side)
            if reader in self._remembering:
                waiting[reader].append(given)
            elif isinstance(reader, SINKS):
                written.append(self._written(reader, given.change))
            else:
                for change in self._taken(reader, given):
                    self._flow(reader, flown._replace(change=change), waiting, written)

    def _written(self, node: Node, change: Change) -> Written:
        try:
            return self._sinks[node].write(change)
        except FunctionFailed as failed:
            raise failed.located(*change.place) from failed.__cause__

    def _taken(self, node: Node, given: Queued) -> list[Change]:
        try:
            return list(self._operators[node].take(given.side, given.change))
        except FunctionFailed as failed:
            raise failed.located(*given.change.place) from failed.__cause__

    def _flown(self, node: Node, given: list[Queued], now: int) -> list[Queued]:
        operator = self._operators[node]
        name = f"operator {node.name}"
        out = [Queued(0, name, each) for each in operator.begin(now)]
        for each in _in_order(node, given) if node in self._remembering else given:
            queue = name if node in self._remembering else each.queue
            out += [Queued(0, queue, change) for change in self._taken(node, each)]
        out += [Queued(0, name, each) for each in operator.end()]
        if not node.is_table or node not in self._remembering:
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
