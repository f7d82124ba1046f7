"""Starting the one query of an app, and what is done with each of its micro-batches.

Q1  What a micro-batch writes, to however many topics, is one transaction of the sink. Functions of this program
    (`for_each`, `print`) come after it, and may see a micro-batch again if the program ends in between; topics never
    do.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.record import Record
from ottla.streams.lowering.calling import caller, loader
from ottla.streams.lowering.execution import Execution, writable
from ottla.streams.lowering.steps import OFFERED
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import ForEach, Print, To
from ottla.streams.plan.sources import Source
from ottla.streams.types.codec import decoder
from ottla.streams.types.serde import serde

# Writes the rows of a micro-batch, given its number.
Write = Callable[[DataFrame, int], None]
Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When micro-batches begin: `every` so often ("0 seconds": as soon as one has ended), or once for what is there
    now.
    """

    every: str = "0 seconds"
    available_now: bool = False


def start_direct(
    execution: Execution, name: str, checkpoint: str, trigger: Trigger, options: Mapping[str, str]
) -> StreamingQuery:
    """Start a query whose rows go straight into the sink."""
    writer = execution.direct().writeStream.format("ottla").options(**options)
    return _started(writer, name, checkpoint, trigger, execution.output_mode)


def start_by_batch(
    execution: Execution,
    name: str,
    checkpoint: str,
    trigger: Trigger,
    handle: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    """Start a query each of whose micro-batches is handled by a function of this program."""
    # It would print the stack of whatever is about to be told in a sentence.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
    writer = execution.stream().writeStream.foreachBatch(handle)
    return _started(writer, name, checkpoint, trigger, execution.output_mode)


def _started(writer: Any, name: str, checkpoint: str, trigger: Trigger, mode: str) -> StreamingQuery:
    writer = writer.queryName(name).outputMode(mode).option("checkpointLocation", checkpoint)
    when: dict[str, Any] = (
        {"availableNow": True} if trigger.available_now else {"processingTime": trigger.every}
    )
    query: StreamingQuery = writer.trigger(**when).start()
    return query


_EXECUTION = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


def stop(query: StreamingQuery) -> None:
    """End a query. The micro-batch that is under way is given up, which Spark calls an error; it is none."""
    context = SparkContext._active_spark_context
    if context is None:
        return
    logs: Any = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    before = logs.LogManager.getLogger(_EXECUTION).getLevel()
    logs.core.config.Configurator.setLevel(_EXECUTION, logs.Level.OFF)
    try:
        query.stop()
    finally:
        logs.core.config.Configurator.setLevel(_EXECUTION, before)


class Handler:
    """What is done with each micro-batch: write its rows, call the functions, and hand the records to whoever
    collects.
    """

    def __init__(
        self,
        execution: Execution,
        write: Write | None,
        show: Show,
        collect: Callable[[list[Record]], None] | None,
    ) -> None:
        self._execution = execution
        self._write = write
        self._show = show
        self._collect = collect

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Handle a micro-batch."""
        seen = self._execution.seen
        is_looked_at = bool(seen) or self._collect is not None
        if is_looked_at:
            batch.persist()
        try:
            if self._write is not None and len(seen) < len(self._execution.outputs):
                rows = batch.where(~F.col("output").isin(seen)) if seen else batch
                self._write(writable(rows), number)
            if is_looked_at:
                # Rows of Spark's own cannot have all times that there are: Python refuses some of the year 1.
                self._look(batch.toArrow().to_pylist())
        finally:
            if is_looked_at:
                batch.unpersist()

    def _look(self, rows: list[Any]) -> None:
        """Call the functions with what is theirs, and hand all to whoever collects, in the order of the rows."""
        look = [self._looking(n, each) for n, each in enumerate(self._execution.outputs)]
        records = [look[row["output"]](row) for row in rows]
        if self._collect is not None:
            self._collect(records)

    def _looking(self, number: int, node: Node) -> Callable[[Any], Record]:
        if isinstance(node, To) or (isinstance(node, Source) and number >= len(self._execution.flow.ends)):
            return _reader(node)
        source = node.input if isinstance(node, ForEach | Print) else node
        load_key, load_value = loader(source.key), loader(source.value)
        call = caller(node.action, OFFERED, node.name) if isinstance(node, ForEach) else None

        def look(row: Any) -> Record:
            found = row[f"seen_{number}"]
            key, value = load_key(found["key"]), load_value(found["value"])
            if call is not None:
                call(key, value)
            elif isinstance(node, Print):
                self._show(f"[{node.label}]: {key}, {value}")
            place = found["partition"], found["offset"], found["timestamp"]
            return Record(node.name, *place, key, value, _headers(found))

        return look


def _headers(row: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((each["key"], each["value"]) for each in row["headers"] or ())


def _reader(node: Node) -> Callable[[Any], Record]:
    """A function from a row for a topic to a record of the types that were written, or of bytes for a dead letter."""
    if isinstance(node, To):
        keys, values = decoder(node.key_serde), decoder(node.value_serde)
    else:
        assert isinstance(node, Source)
        keys = values = decoder(serde(bytes))

    def read(row: Any) -> Record:
        key = None if row["key"] is None else keys(row["key"])
        value = None if row["value"] is None else values(row["value"])
        partition = -1 if row["partition"] is None else row["partition"]
        return Record(row["topic"], partition, -1, row["timestamp"], key, value, _headers(row))

    return read
