"""Which part of a topology is one streaming query, and which is done with each of its micro-batches.

E1  One app is one query. So every micro-batch is one transaction, whatever the number of sinks, and all of it is seen
    or nothing.
E2  What remembers anything is in the streaming part, and what it depends on. The streaming part ends at the cuts:
    operators that are read by a sink, or by an operator that remembers nothing and is needed by no other that does.
E3  What comes out of the cuts is computed once a micro-batch and kept; the rest is computed from it, as often as it
    is read.
E4  A topology of one topic to write to and nothing else has no second part: its rows go straight into the sink.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.lower import Lowered
from ottla.streams.lowering.reading import decode, readable, unreadable
from ottla.streams.lowering.writing import ROWS, outgoing
from ottla.streams.plan.native import check_native
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import SINKS, To
from ottla.streams.plan.sources import GlobalTableSource, Source
from ottla.streams.plan.topology import Plan, upstream


@dataclass(frozen=True, slots=True)
class Output:
    """What comes out of a micro-batch at one end: rows for a topic, or records of an operator."""

    node: Node
    frame: DataFrame
    is_rows: bool


class Execution:
    """A plan made ready to run in a context."""

    def __init__(self, plan: Plan, context: Context) -> None:
        self.context = context
        self.ends: tuple[Node, ...] = plan.sinks or plan.loose_ends
        needed = {each for end in self.ends for each in upstream(end)}
        self.sources = tuple(
            each for each in plan.sources if each in needed and not isinstance(each, GlobalTableSource)
        )
        self._streamed = _streamed(needed)
        # In the order in which the ends lead to them: to state it does not matter whether there is a second part.
        found = dict.fromkeys(each for end in self.ends for each in upstream(end))
        self.cuts = tuple(
            each for each in found if each in self._streamed and self._is_cut(each, plan, needed)
        )
        # Of these the good and the bad records are told apart in the second part; of others the bad ones are a cut.
        letters = self.sources if context.dead_letters is not None else ()
        self._whole = tuple(
            each for each in letters if each in self.cuts and not self._is_streamed_on(each, plan)
        )
        self._apart = tuple(each for each in letters if each not in self._whole)
        self._lowered = Lowered(context)
        if context.native:
            check_native(self.remembered(), context.updates)

    def _is_cut(self, node: Node, plan: Plan, needed: set[Node]) -> bool:
        if node in self.ends:
            return True
        return any(each in needed and each not in self._streamed for each in plan.readers(node))

    def _is_streamed_on(self, node: Node, plan: Plan) -> bool:
        return node.stateful or any(each in self._streamed for each in plan.readers(node))

    @property
    def is_direct(self) -> bool:
        """Whether the rows of the query are what is to be written, and nothing is computed twice for them."""
        if len(self.ends) != 1 or not isinstance(self.ends[0], To) or self.context.dead_letters is not None:
            return False
        if self.context.native:  # the stream writer cannot take changes of Spark's own aggregations
            return False
        return list(_remembering(self.ends)) == self.remembered()

    @property
    def output_mode(self) -> str:
        """What Spark calls the way in which results leave the query."""
        return "update" if self.context.native else "append"

    def direct(self) -> DataFrame:
        """Return the rows that are to be written, where that is all there is to do."""
        (sink,) = self.ends
        assert isinstance(sink, To)
        return writable(outgoing(sink, self._lowered.frame(sink.input)))

    def stream(self) -> DataFrame:
        """Return what the streaming query computes: all that comes out of the cuts, and the dead letters."""
        frames = [
            decode(each, self.context) if each in self._whole else self._lowered.frame(each)
            for each in self.cuts
        ]
        frames += [unreadable(decode(each, self.context), self.context) for each in self._apart]
        if len(frames) == 1:
            return frames[0]
        tagged = [_tagged(frame, n, frames) for n, frame in enumerate(frames)]
        whole = tagged[0]
        for each in tagged[1:]:
            whole = whole.union(each)
        return whole

    def outputs(self, batch: DataFrame) -> list[Output]:
        """Return what comes out at the ends, given what came out of the cuts in a micro-batch."""
        count = len(self.cuts) + len(self._apart)
        parts = [batch] if count == 1 else [_untagged(batch, n) for n in range(count)]
        known: dict[Node, DataFrame] = dict(zip(self.cuts, parts, strict=False))
        letters: dict[Node, DataFrame] = dict(zip(self._apart, parts[len(self.cuts) :], strict=True))
        for source in self._whole:
            letters[source] = unreadable(known[source], self.context)
            known[source] = readable(known[source], source, self.context)
        rest = Lowered(self.context, known)
        found = []
        for end in self.ends:
            if isinstance(end, To):
                found.append(Output(end, outgoing(end, rest.frame(end.input)), is_rows=True))
            else:
                found.append(
                    Output(end, rest.frame(end.input if isinstance(end, SINKS) else end), is_rows=False)
                )
        return [*found, *(Output(node, part, is_rows=True) for node, part in letters.items())]

    def remembered(self) -> list[Node]:
        """Return the sources and the operators with state in the order in which the query has them."""
        return list(_remembering(self.cuts))


def _remembering(ends: tuple[Node, ...]) -> Iterator[Node]:
    for end in ends:
        for each in upstream(end):
            if each.stateful or (isinstance(each, Source) and not isinstance(each, GlobalTableSource)):
                yield each


def _streamed(needed: set[Node]) -> set[Node]:
    found = {each for node in needed if node.stateful for each in upstream(node)}
    found |= {each for each in needed if isinstance(each, Source)}
    # A global table is looked up where it is needed; nothing flows out of it.
    return {each for each in found if not isinstance(each, GlobalTableSource)}


def _tagged(frame: DataFrame, n: int, frames: list[DataFrame]) -> DataFrame:
    """One of several frames of different columns, in a form that all of them have."""
    columns: list[Column] = [F.lit(n).alias("cut")]
    for each, other in enumerate(frames):
        part = F.struct(*frame.columns) if each == n else F.lit(None).cast(StructType(other.schema.fields))
        columns.append(part.alias(f"cut_{each}"))
    return frame.select(*columns)


def _untagged(batch: DataFrame, n: int) -> DataFrame:
    return batch.where(F.col("cut") == n).select(f"cut_{n}.*")


def writable(rows: DataFrame) -> DataFrame:
    """Return rows as the sink `ottla` takes them, whose timestamps are not numbers."""
    return rows.withColumn("timestamp", F.timestamp_millis(F.col("timestamp")))


def united(outputs: list[Output]) -> DataFrame | None:
    """Return all rows for topics in one frame, each with the number of its output; None where there are none."""
    whole: DataFrame | None = None
    for n, each in enumerate(outputs):
        if each.is_rows:
            part = each.frame.select(F.lit(n).alias("output"), *ROWS.names)
            whole = part if whole is None else whole.union(part)
    return whole
