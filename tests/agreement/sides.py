"""The sides of a comparison that need no Spark: the reference, and the lowered operators in a simulated one.

S1  Both give what was written as rows: topic, key, value, timestamp, headers, all as bytes. What goes to a function of
    the program has the name of its operator for a topic, and key and value as they are shown.
S2  The reference takes all records as one micro-batch, except where a table shows one change a key and micro-batch.
    State in several partitions is as many operators, each with a time of its own.
S3  What is simulated begins anew at a restart: the topology is built again, and only state and offsets are kept.
"""

import pickle
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.client.record import Record
from ottla.streams.errors import Unreadable
from ottla.streams.lowering.envelope import schema
from ottla.streams.lowering.fan_out import paths_from
from ottla.streams.lowering.origin_pass import DeadLetters, OriginPass
from ottla.streams.lowering.reading import clock, told
from ottla.streams.lowering.row_order import in_order, unpacked, unpacked_in_order
from ottla.streams.lowering.stateful.division import divided
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.parcels import Parcel, batch_of
from ottla.streams.plan.joins import ForeignKeyJoin
from ottla.streams.plan.node import Node, StreamNode
from ottla.streams.plan.sinks import ForEach, Print
from ottla.streams.plan.sources import Source, reads
from ottla.streams.plan.topology import Plan
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.interpreter import Interpreter
from ottla.streams.reference.operators import operator_of
from ottla.streams.types.codec import plain_decoder
from tests.agreement.program import Program, by_topic
from tests.unit.streams.stateful.chain import Chain, State, travelled


class Row(NamedTuple):
    """Something that was written."""

    topic: str
    key: Any
    value: Any
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


class InPartitions(Operator):
    """An operator with state in several partitions."""

    def __init__(self, node: Node, partitions: int) -> None:
        self._parts = [operator_of(node, {}) for _ in range(partitions)]
        self._codes = [key_code(each.key) for each in node.inputs or (node,)]

    def begin(self, now: int) -> Iterable[Change]:
        return [change for each in self._parts for change in each.begin(now)]

    def take(self, side: int, change: Change) -> Iterable[Change]:
        code = self._codes[side]
        at = None if change.key is None else code.encode(change.key)
        (number,) = divided(code, [at], len(self._parts))
        return self._parts[number].take(side, change)

    def end(self) -> Iterable[Change]:
        return [change for each in self._parts for change in each.end()]


def by_reference(program: Program) -> list[Row]:
    """What the reference writes."""
    settings = dict(program.settings)
    interpreter = Interpreter(
        program.app().plan(), updates=program.updates, dead_letters=settings.get("dead_letters"), app="plan"
    )
    if program.partitions > 1:
        for node in interpreter._operators:
            if node.stateful and not isinstance(node, ForeignKeyJoin):
                interpreter._operators[node] = InPartitions(node, program.partitions)
    if program.updates == "last":
        interpreter._follow(by_topic(program.records))  # global tables
        queues = [interpreter._queues(by_topic(batch)) for batch in program.batches]
        written = [each for some in queues for each in interpreter._batch(some)]
    else:
        written = interpreter.batch(by_topic(program.records))
    return [
        Row(
            each.record.topic,
            repr(each.record.key),
            repr(each.record.value),
            each.record.timestamp,
            each.record.headers,
        )
        if each.raw is None
        else Row(each.raw.topic, each.raw.key, each.raw.value, each.raw.timestamp, tuple(each.raw.headers))
        for each in written
    ]


class Simulated(Chain):
    """The lowered topology on records as bytes, with Spark's part done by the test."""

    def __init__(self, plan: Plan, program: Program, seed: int) -> None:
        self._dead_letters = dict(program.settings).get("dead_letters")
        super().__init__(
            plan,
            program.partitions,
            program.updates,
            seed,
            dead_letters=self._dead_letters,
            given=by_topic(program.records),
        )

    def rows_of(self, records: Sequence[Record]) -> list[Row]:
        """Run a micro-batch."""
        rows: list[pa.RecordBatch] = []
        parcels: list[Parcel] = []
        flow = self.execution.flow
        for source in flow.sources:
            found = list(self._passed(source, [each for each in records if reads(source, each.topic)]))
            if flow.is_alone(source):
                rows += found
            else:
                parcels += [Parcel(*row.values()) for each in found for row in each.to_pylist()]
        for n, frame in enumerate(self.execution.frames()):
            parcels = self._staged(n, frame, parcels)
        labels = dict.fromkeys(each.label for each in parcels)
        parts = [batch_of([each for each in parcels if each.label == label]) for label in labels]
        if self.execution.has_lineage and self.execution.flow.is_mixed and self._context.partitions > 1:
            # Once more rows are shuffled by topic and key, before they are sorted.
            rows += in_order(self._chance.sample(found := list(unpacked(parts)), len(found)))
        else:
            leave = unpacked_in_order if self.execution.has_lineage else unpacked
            rows += [each for part in parts for each in leave([part])]
        return [self._written(row) for each in rows for row in each.to_pylist()]

    def _passed(self, source: Source, records: Sequence[Record]) -> Iterable[pa.RecordBatch]:
        flow, letters = self.execution.flow, None
        entry, is_alone = flow.entry(source), flow.is_alone(source)
        if source in self.execution._letters:
            letters = DeadLetters(self.execution._letters[source], self._dead_letters, told)
        paths = paths_from(flow, entry, self._context)
        made = travelled(OriginPass(paths, self.execution.layout, not is_alone, letters, clock(source)))
        rows = [self._decoded(source, each) for each in records]
        if letters is None:
            for row in rows:
                if row["reason"] is not None:
                    raise Unreadable(row["reason"])
        node = StreamNode(name="", key=entry.key, value=entry.value)
        fields = to_arrow_schema(schema(node), timezone="UTC")
        for name, type in (("reason", pa.string()), ("raw_key", pa.binary()), ("raw_value", pa.binary())):
            fields = fields.append(pa.field(name, type))
        return made(
            [pa.RecordBatch.from_pylist(rows[start:end], fields) for start, end in self._edges(len(rows))]
        )

    def _decoded(self, source: Source, record: Record) -> dict[str, Any]:
        found: dict[str, Any] = {"reason": None, "raw_key": record.key, "raw_value": record.value}
        for half, form in (("key", source.key_serde), ("value", source.value_serde)):
            data = getattr(record, half)
            try:
                found[half] = None if data is None else plain_decoder(form)(data)
            except Unreadable as error:
                found[half] = None
                found["reason"] = found["reason"] or f"{half}: {error.args[0]}"
        headers = [{"key": name, "value": value} for name, value in record.headers]
        rest = {name: getattr(record, name) for name in ("timestamp", "topic", "partition", "offset")}
        return {**found, **rest, "headers": headers}

    def _written(self, row: dict[str, Any]) -> Row:
        number = row["output"]
        headers = row["headers"]
        if row.get(f"seen_{number}") is not None:
            node = self.execution.outputs[number]
            given = node.input if isinstance(node, ForEach | Print) else node
            row = row[f"seen_{number}"]
            shown = (
                repr(None if plain is None else type.load(plain))
                for type, plain in ((given.key, row["key"]), (given.value, row["value"]))
            )
            return Row(node.name, *shown, row["timestamp"], as_headers(row["headers"]))
        return Row(row["topic"], row["key"], row["value"], row["timestamp"], as_headers(headers))


def as_headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as Arrow has them."""
    return tuple((each["key"], each["value"]) for each in given or ())


def by_simulation(program: Program, seed: int = 0) -> list[Row]:
    """What the lowered topology writes, cut as the program says."""
    running = Simulated(program.app().plan(), program, seed)
    found: list[Row] = []
    for n, batch in enumerate(program.batches):
        if n and n == program.restart:
            kept = pickle.dumps({name: state.rows for name, state in running._states.items()})
            running = Simulated(program.app().plan(), program, seed + 1)
            for name, rows in pickle.loads(kept).items():
                running._states[name] = State(rows)
        found += running.rows_of(batch)
    return found
