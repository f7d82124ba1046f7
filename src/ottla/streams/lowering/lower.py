"""From operators to DataFrames: the table of who lowers what, and the walk over the plan.

O1  An operator is lowered once, and whoever reads it gets the same DataFrame.
O2  What comes out of an operator has the columns of the envelope, whoever lowered it.
"""

from collections.abc import Callable
from importlib import import_module

from pyspark.sql import DataFrame

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.envelope import conform
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
    ToTable: ("stateful.table", "lower_table"),
    Suppress: ("stateful.suppress", "lower_suppress"),
    Cogroup: ("stateful.cogroup", "lower_cogroup"),
    TableAggregate: ("stateful.table_aggregate", "lower_table_aggregate"),
    StreamJoin: ("stateful.stream_join", "lower_stream_join"),
    StreamTableJoin: ("stateful.stream_table_join", "lower_stream_table_join"),
    GlobalTableJoin: ("stateful.global_table_join", "lower_global_table_join"),
    TableJoin: ("stateful.table_join", "lower_table_join"),
    ForeignKeyJoin: ("stateful.foreign_key_join", "lower_foreign_key_join"),
    Process: ("stateful.process", "lower_process"),
    Distinct: ("stateful.distinct", "lower_distinct"),
}
PLAIN_AGGREGATE = ("stateful.aggregate", "lower_aggregate")
WINDOWED_AGGREGATE = ("stateful.windowed", "lower_windowed")


def lowering_of(node: Node) -> Lowering:
    """Return the function that lowers an operator."""
    if isinstance(node, Aggregate):
        module, function = PLAIN_AGGREGATE if node.window is None else WINDOWED_AGGREGATE
    else:
        module, function = TABLE[type(node)]
    found: Lowering = getattr(import_module(f"ottla.streams.lowering.{module}"), function)
    return found


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
