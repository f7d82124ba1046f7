"""From operators to DataFrames: the table of who lowers what, and the walk over the plan.

O1  An operator is lowered once, and whoever reads it gets the same DataFrame.
O2  What comes out of an operator has the columns of the envelope, whoever lowered it.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from pyspark.sql import DataFrame

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.envelope import conform
from ottla.streams.lowering.stateful.stage import Stage
from ottla.streams.lowering.steps import Step, step_of, stepped
from ottla.streams.plan.aggregates import Aggregate, Cogroup, Regroup, TableAggregate
from ottla.streams.plan.distinct import Distinct
from ottla.streams.plan.joins import ForeignKeyJoin, GlobalTableJoin, StreamJoin, StreamTableJoin, TableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sources import GlobalTableSource, StreamSource, TableSource
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Repartition,
    SelectKey,
)
from ottla.streams.plan.tables import Suppress, TableFilter, TableMapValues, ToStream, ToTable

Lowering = Callable[[Node, list[DataFrame], Context], DataFrame]
Staging = Callable[[Node, Context], list[Stage]]

# The module and the function that lower an operator. They are imported when a topology has one.
TABLE: dict[type[Node], tuple[str, str]] = {
    StreamSource: ("reading", "lower_source"),
    TableSource: ("reading", "lower_table_source"),
    Filter: ("stateless", "lower_filter"),
    Branch: ("stateless", "lower_branch"),
    Map: ("stateless", "lower_map"),
    MapValues: ("stateless", "lower_map_values"),
    FlatMap: ("stateless", "lower_flat_map"),
    FlatMapValues: ("stateless", "lower_flat_map_values"),
    SelectKey: ("stateless", "lower_select_key"),
    Merge: ("stateless", "lower_merge"),
    Repartition: ("stateless", "lower_repartition"),
    ToStream: ("tables", "lower_to_stream"),
    TableFilter: ("tables", "lower_table_filter"),
    TableMapValues: ("tables", "lower_table_map_values"),
    Regroup: ("tables", "lower_regroup"),
    ToTable: ("tables", "lower_to_table"),
    GlobalTableJoin: ("stateful.global_table_join", "lower_global_table_join"),
}
# The same for operators with state, which are stages of a query.
STAGES: dict[type[Node], tuple[str, str]] = {
    TableSource: ("table", "table_stages"),
    ToTable: ("table", "table_stages"),
    Aggregate: ("windowed", "windowed_stages"),
    Cogroup: ("cogroup", "cogroup_stages"),
    TableAggregate: ("table_aggregate", "table_aggregate_stages"),
    Suppress: ("suppress", "suppress_stages"),
    StreamJoin: ("stream_join", "stream_join_stages"),
    StreamTableJoin: ("stream_table_join", "stream_table_join_stages"),
    TableJoin: ("table_join", "table_join_stages"),
    ForeignKeyJoin: ("foreign_key_join", "foreign_key_join_stages"),
    Process: ("process", "process_stages"),
    Distinct: ("distinct", "distinct_stages"),
}
PLAIN_AGGREGATE = ("aggregate", "aggregate_stages")


def lowering_of(node: Node) -> Lowering:
    """Return the function that lowers an operator without state."""
    module, function = TABLE[type(node)]
    found: Lowering = getattr(import_module(f"ottla.streams.lowering.{module}"), function)
    return found


def stages_of(node: Node, context: Context) -> list[Stage]:
    """Return the stages that an operator is; none where it remembers nothing."""
    place = STAGES.get(type(node))
    if place is None:
        return []
    if isinstance(node, Aggregate) and node.window is None:
        place = PLAIN_AGGREGATE
    module, function = place
    found: Staging = getattr(import_module(f"ottla.streams.lowering.stateful.{module}"), function)
    return found(node, context)


def chained(frame: DataFrame, first: Node, nodes: Sequence[Node], context: Context) -> DataFrame:
    """Return what comes of a frame on a way of operators that have one reader each; `first` gives the frame."""
    left = list(nodes)
    while left:
        steps: list[Step] = []
        while left and (step := step_of(left[0])) is not None:
            steps.append(step)
            left.pop(0)
        if steps:
            frame = stepped(frame, first, tuple(steps))
            first = steps[-1].node
            continue
        node = left.pop(0)
        # Of what is merged only these records are at hand.
        if not isinstance(node, Merge):
            frame = conform(lowering_of(node)(node, [frame], context), node)
        first = node
    return frame


class Lowered:
    """The DataFrames of operators, each made when it is first asked for."""

    def __init__(self, context: Context, known: dict[Node, DataFrame] | None = None) -> None:
        self.context = context
        # Those that were lowered elsewhere: what has been computed of a micro-batch already.
        self._frames: dict[Node, DataFrame] = dict(known or {})

    def frame(self, node: Node) -> DataFrame:
        """Return what flows out of an operator."""
        found = self._frames.get(node)
        if found is None:
            step = step_of(node)
            found = self._pass(node, step) if step is not None else self._lowered(node)
            self._frames[node] = found
        return found

    def _lowered(self, node: Node) -> DataFrame:
        inputs = [self.frame(each) for each in node.inputs if not isinstance(each, GlobalTableSource)]
        return conform(lowering_of(node)(node, inputs, self.context), node)

    def _pass(self, node: Node, step: Step) -> DataFrame:
        """Make one pass of this operator and of those before it that are steps as well."""
        first, steps = node.input, [step]
        while first not in self._frames and (before := step_of(first)) is not None:
            first, steps = first.input, [before, *steps]
        return stepped(self.frame(first), first, tuple(steps))
