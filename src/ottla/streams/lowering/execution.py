"""A topology as one streaming query: each source is read once, each operator runs once, and rows come out.

    source ──► records ──► parcels ──► stage 1 ──► stage 2 ──► … ──► rows
    source ──► records ───────────────────────────────────────────► rows       where no stage is on the way

E1  One app is one query. So every micro-batch is one transaction, whatever the number of sinks, and all of it is seen
    or nothing.
E2  Stages stand in a chain. What is for a later stage, or leaves the topology, passes a stage unopened, so nothing is
    computed twice, and a checkpoint depends on the chain alone, not on the sinks.
E3  Rows of one key leave for one topic in the order in which Kafka Streams writes them: as the records that they come
    of stood in their queue, and of one record depth first. The paths without state behind an origin are one pass, which
    keeps that order; where rows of several origins meet, they are sorted by their lineages (`emission.py`).
"""

from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ottla.streams.lowering.column_fan_out import are_columns_enough, column_fan_out
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.lowering.emission import TAIL, Layout
from ottla.streams.lowering.envelope import schema
from ottla.streams.lowering.fan_out import paths_from
from ottla.streams.lowering.flow import End, Flow, Reader, StageInput
from ottla.streams.lowering.lower import Lowered, chained
from ottla.streams.lowering.origin_pass import DeadLetters, OriginPass
from ottla.streams.lowering.reading import clock, decode, readable, told
from ottla.streams.lowering.row_order import in_order, unpacked, unpacked_in_order
from ottla.streams.lowering.stateful.host import Frame
from ottla.streams.lowering.stateful.native import native_count
from ottla.streams.lowering.stateful.parcels import PARCELS, Packing
from ottla.streams.lowering.stateful.transform import transformed
from ottla.streams.lowering.tables import lower_to_table
from ottla.streams.lowering.writing import ROWS, outgoing
from ottla.streams.plan.native import check_native
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import To
from ottla.streams.plan.sources import Source
from ottla.streams.plan.topology import Plan

# Where a row comes from (`emission.py`).
_ROOT = [
    StructField("root_topic", StringType()),
    StructField("root_partition", IntegerType()),
    StructField("root_offset", LongType()),
    StructField("root_timestamp", LongType()),
    StructField("path", BinaryType()),
]


class Execution:
    """A plan made ready to run in a context."""

    def __init__(self, plan: Plan, context: Context) -> None:
        self.context = context
        self.flow = Flow(plan, context)
        if context.native:
            check_native(self.flow.remembered, context.updates)
        # What comes out, by the numbers of rows: ends, then the dead letters of each source.
        self.outputs: list[Node] = [each.node for each in self.flow.ends]
        self._letters: dict[Source, int] = {}
        if context.dead_letters is not None:
            for source in self.flow.sources:
                self._letters[source] = len(self.outputs)
                self.outputs.append(source)
        self._seen = tuple(each for each in self.flow.ends if not isinstance(each.node, To))
        passes_by = any(not self.flow.is_alone(each) for each in self._letters)
        self.has_lineage = bool(self.flow.stages) and (passes_by or not self.flow.is_straight)
        self._rows = StructType(
            [
                StructField("output", IntegerType()),
                *ROWS.fields,
                *(StructField(f"seen_{each.number}", _record(each)) for each in self._seen),
            ]
        )
        self.layout = self._made_layout()

    def _made_layout(self) -> Layout:
        root = _ROOT if self.has_lineage else []
        inputs = {}
        for stage in self.flow.stages:
            for stage_input in self.flow.inputs_of(stage):
                fields = [*_input_schema(stage_input).fields, *root]
                inputs[stage_input.number] = _arrow(StructType(fields)), stage.keys[stage_input.side]
        return Layout(
            _arrow(StructType([*self._rows.fields, *root])),
            tuple(each.number for each in self._seen),
            inputs,
            self.context.partitions,
            self.has_lineage,
        )

    @property
    def seen(self) -> list[int]:
        """The outputs that are functions of this program."""
        return [each.number for each in self._seen]

    @property
    def is_direct(self) -> bool:
        """Whether all that comes out are rows for topics, in the way in which the stream writer takes them."""
        # It cannot take changes of Spark's own aggregations.
        return not self._seen and not self.context.native

    @property
    def output_mode(self) -> str:
        """What Spark calls the way in which results leave the query."""
        return "update" if self.context.native else "append"

    def direct(self) -> DataFrame:
        """Return the rows that are to be written, where that is all there is to do."""
        return writable(self.stream())

    def stream(self) -> DataFrame:
        """Return all that comes out: rows with the numbers of their outputs."""
        rows: list[DataFrame] = []
        parcels: list[DataFrame] = []
        if self.flow.native is not None:
            rows.append(self._native(self.flow.native))
        # In the order of `Flow.order`.
        for source in self.flow.sources:
            if not self.flow.is_alone(source):
                parcels.append(self._out_of(source, is_packed=True))
            elif self.flow.native is None or self.flow.ends_of(source) or source in self._letters:
                rows.append(self._out_of(source, is_packed=False))
        if parcels:
            rows.append(self._through_stages(reduce(DataFrame.union, parcels)))
        return reduce(DataFrame.union, rows)

    # What comes out of a source

    def _out_of(self, source: Source, *, is_packed: bool) -> DataFrame:
        entry = self.flow.entry(source)
        raw = decode(source, self.context)
        if source in self._letters:
            assert self.context.dead_letters is not None
            number, topic = self._letters[source], self.context.dead_letters
            if not is_packed and source.timestamp is None and are_columns_enough(self.flow, entry):
                return column_fan_out(self.flow, entry, raw, self._rows, (number, topic))
            letters = DeadLetters(number, topic, told)
            paths = paths_from(self.flow, entry, self.context)
            return self._passed(raw, OriginPass(paths, self.layout, is_packed, letters, clock(source)))
        frame = readable(raw, source, self.context)
        return self._on(
            entry, lower_to_table(entry, [frame], self.context) if entry.is_table else frame, is_packed
        )

    def _on(self, origin: Node, frame: DataFrame, is_packed: bool) -> DataFrame:
        """Return what comes of the records of an origin, as long as there is one path as columns."""
        node, chain = origin, []
        readers = self.flow.readers(node)
        while len(readers) == 1 and isinstance(readers[0], Node):
            node = readers[0]
            chain.append(node)
            readers = self.flow.readers(node)
        frame = chained(frame, origin, chain, self.context)
        if len(readers) == 1:
            return self._arrived(frame, chain, readers[0])
        if not is_packed and are_columns_enough(self.flow, node):
            return column_fan_out(self.flow, node, frame, self._rows)
        paths = paths_from(self.flow, node, self.context)
        return self._passed(frame, OriginPass(paths, self.layout, is_packed))

    def _passed(self, frame: DataFrame, made: OriginPass) -> DataFrame:
        return frame.mapInArrow(made, PARCELS if made.is_packed else self._rows)

    def _arrived(self, frame: DataFrame, chain: list[Node], reader: Reader) -> DataFrame:
        if isinstance(reader, End):
            return self._left(frame, reader)
        assert isinstance(reader, StageInput)
        stage, level = reader.stage, None
        if self.has_lineage:
            level = int(reader.moves)
        # What is not needed does not go to Python at all.
        if not stage.values:
            frame = frame.where(F.col("key").isNotNull() & F.col("value").isNotNull())
        packing = Packing(reader.number, stage.keys[reader.side], self.context.partitions, level)
        return frame.select(*_input_schema(reader).names).mapInArrow(packing, PARCELS)

    def _left(self, frame: DataFrame, end: End) -> DataFrame:
        """Return rows of one end."""
        known: dict[str, Column] = {"output": F.lit(end.number)}
        if isinstance(end.node, To):
            frame = outgoing(end.node, frame)
            known |= {name: F.col(name) for name in ROWS.names}
        else:
            known[f"seen_{end.number}"] = F.struct("key", "value", *TAIL)
        columns = (
            known.get(each.name, F.lit(None)).cast(each.dataType).alias(each.name)
            for each in self._rows.fields
        )
        return frame.select(*columns)

    # Stages

    def frames(self) -> list[Frame]:
        """Return what surrounds the operator of each stage."""
        stages, context = self.flow.stages, self.context
        return [
            Frame(
                stage.node.name,
                context.partitions,
                {each.number: each.side for each in self.flow.inputs_of(stage)},
                stage.keys,
                stage.ranks,
                stage.node.key,
                paths_from(self.flow, stage.node, context),
                self.layout,
                n == len(stages),
                stage.node.is_table and context.updates == "last",
            )
            for n, stage in enumerate(stages, 1)
        ]

    def _through_stages(self, parcels: DataFrame) -> DataFrame:
        for stage, frame in zip(self.flow.stages, self.frames(), strict=True):
            parcels = transformed(parcels, stage.operator, frame, self.context)
        if not self.has_lineage:
            return parcels.mapInArrow(unpacked, self._rows)
        if self.context.partitions == 1 or not self.flow.is_mixed:
            return parcels.mapInArrow(unpacked_in_order, self._rows)
        placed = parcels.mapInArrow(unpacked, StructType([*self._rows.fields, *_ROOT]))
        return placed.repartition(self.context.partitions, "topic", "key").mapInArrow(in_order, self._rows)

    def _native(self, node: Node) -> DataFrame:
        counted = native_count(node, Lowered(self.context).frame(node.input))
        return self._on(node, counted, is_packed=False)


def _arrow(type: StructType) -> bytes:
    found: bytes = to_arrow_schema(type, timezone="UTC").serialize().to_pybytes()
    return found


def _record(end: End) -> StructType:
    """What a function of this program is to see."""
    known = {"key": spark_type(end.given.key), "value": spark_type(end.given.value)}
    tail: list[Any] = [schema(end.given)[name] for name in TAIL]
    return StructType([*(StructField(name, type) for name, type in known.items()), *tail])


def _input_schema(stage_input: StageInput) -> StructType:
    """What comes into a stage by one of its inputs."""
    stage = stage_input.stage
    given = stage.inputs[stage_input.side]
    names = ("key", *(("value",) if stage.values else ()), *(("old",) if stage.olds else ()))
    types = {"key": given.key, "value": given.value, "old": given.value}
    tail = [schema(given)[name] for name in TAIL]
    return StructType([*(StructField(name, spark_type(types[name])) for name in names), *tail])


def writable(rows: DataFrame) -> DataFrame:
    """Return rows as the sink `ottla` takes them, whose timestamps are not numbers."""
    return rows.select(*ROWS.names).withColumn("timestamp", F.timestamp_millis(F.col("timestamp")))
