"""Brings records to operators one by one, and collects what is written.

I1  A record is done with before the next one begins. What an operator makes of it goes to its readers one after
    another, in the order in which they were said, each as far as it leads.
I2  A micro-batch changes nothing, but that processors are made anew; and where a table shows one change a key and
    micro-batch (updates="last"), operators take their turns instead (`by_batch.py`).
I3  What leads to no end of the topology is not run.
I4  A global table has all that was given of its topic before the first record is joined with it.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.record import Record
from ottla.streams.errors import FunctionFailed
from ottla.streams.plan.native import check_native
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import SINKS
from ottla.streams.plan.sources import GlobalTableSource, Source, reads
from ottla.streams.plan.topology import Plan, upstream
from ottla.streams.reference.by_batch import ByBatch
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.operators import operator_of, sink_of
from ottla.streams.reference.order import ranked, taken
from ottla.streams.reference.sinks import RecordSink, TopicSink, Written
from ottla.streams.reference.sources import GlobalTable, Reader

# A source, and a change or a dead letter that was read from it.
Read = tuple[Source, Change | Record]


class Interpreter:
    """A plan at work.

    `updates`, `dead_letters` and `native` are as in the settings of an app, `app` is its name; `now` is the time on the
    wall, -1 where there is none.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        updates: str = "all",
        dead_letters: str | None = None,
        app: str = "",
        now: int = -1,
        native: bool = False,
    ) -> None:
        self.app = app
        self.now = now
        ends = plan.sinks or plan.loose_ends
        needed = {each for end in ends for each in upstream(end)}
        self._nodes = [each for each in plan.nodes if each in needed]
        if native:
            check_native(self._nodes, updates)
        self._sources = [each for each in ranked(plan) if each in needed]
        self._operators: dict[Node, Operator] = {}
        self._sinks: dict[Node, TopicSink | RecordSink] = {each: sink_of(each) for each in ends}
        for node in self._nodes:
            if not isinstance(node, SINKS):
                self._operators[node] = operator_of(node, self._operators)
        self._readers = {
            node: [
                (reader, side)
                for reader in self._nodes
                for side, given in enumerate(reader.inputs)
                if given is node
            ]
            for node in self._nodes
        }
        self._raw_readers = {each: Reader(each, dead_letters) for each in self._sources}
        self._by_batch = None
        if updates == "last":
            self._by_batch = ByBatch(
                plan, self._nodes, self._operators, self._sinks, self._readers, native=native
            )
        self._written: list[Written] = []

    def feed(self, record: Record) -> list[Written]:
        """Take one record, bytes and all, as a micro-batch of its own."""
        return self.batch({record.topic: [record]})

    def batch(self, given: Mapping[str, Sequence[Record]]) -> list[Written]:
        """Take a micro-batch of records by topic."""
        self._follow(given)
        return self._batch(self._queues(given))

    def run(self, given: Mapping[str, Sequence[Record]], batches: int) -> list[Written]:
        """Take records by topic in so many micro-batches, each with as much of every source."""
        self._follow(given)
        parts: list[list[list[Read]]] = [[] for _ in range(batches)]
        for source in self._streams():
            records = [each for topic in given if reads(source, topic) for each in given[topic]]
            size = -(-len(records) // batches) or 1
            for n, part in enumerate(parts):
                by_topic: dict[str, list[Record]] = {}
                for each in records[n * size : (n + 1) * size]:
                    by_topic.setdefault(each.topic, []).append(each)
                part.extend(self._read(source, some) for some in by_topic.values())
        return [each for part in parts for each in self._batch(part)]

    def advance_wall_clock(self, ms: int) -> list[Written]:
        """Let time on the wall go on, and call the timers that are due."""
        self.now += ms
        for node in self._nodes:
            operator = self._operators.get(node)
            if operator is not None:
                self._flow(node, operator.wake(self.now))
        return self._collected()

    def _streams(self) -> list[Source]:
        return [each for each in self._sources if not isinstance(each, GlobalTableSource)]

    def _queues(self, given: Mapping[str, Sequence[Record]]) -> list[list[Read]]:
        return [
            self._read(source, given[topic])
            for source in self._streams()
            for topic in given
            if reads(source, topic)
        ]

    def _follow(self, given: Mapping[str, Sequence[Record]]) -> None:
        for source in self._sources:
            table = self._operators[source]
            if isinstance(table, GlobalTable):
                for topic in given:
                    if reads(source, topic):
                        for record in given[topic]:
                            table.follow(record)

    def _read(self, source: Source, records: Iterable[Record]) -> list[Read]:
        reader = self._raw_readers[source]
        return [(source, reader.read(each)) for each in records]

    def _batch(self, queues: list[list[Read]]) -> list[Written]:
        if self._by_batch is not None:
            return self._by_batch.run([each for queue in queues for each in queue], self.now)
        for node, operator in self._operators.items():
            self._flow(node, operator.begin(self.now))
        for source, read in taken(queues, lambda each: each[1].timestamp):
            if isinstance(read, Record):
                self._written.append(Written(source, read, read))
            else:
                self._deliver(source, 0, read)
        for node, operator in self._operators.items():
            self._flow(node, operator.end())
        return self._collected()

    def _deliver(self, node: Node, side: int, change: Change) -> None:
        sink = self._sinks.get(node)
        made: Iterable[Change] = ()
        try:
            if isinstance(node, SINKS):
                assert sink is not None
                self._written.append(sink.write(change))
            else:
                made = self._operators[node].take(side, change)
        except FunctionFailed as failed:
            raise failed.located(*change.place) from failed.__cause__
        self._flow(node, made)

    def _flow(self, node: Node, made: Iterable[Change]) -> None:
        for change in made:
            if node in self._sinks and not isinstance(node, SINKS):
                self._written.append(self._sinks[node].write(change))
            for reader, side in self._readers[node]:
                self._deliver(reader, side, change)

    def _collected(self) -> list[Written]:
        written, self._written = self._written, []
        return written
