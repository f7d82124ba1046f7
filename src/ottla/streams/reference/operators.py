"""The table: which class does what each node of the plan means."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.streams.plan.aggregates import Aggregate, Cogroup, Regroup, TableAggregate
from ottla.streams.plan.distinct import Distinct
from ottla.streams.plan.joins import ForeignKeyJoin, GlobalTableJoin, StreamJoin, StreamTableJoin, TableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import ForEach, Print, To
from ottla.streams.plan.sources import GlobalTableSource, StreamSource, TableSource
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Peek,
    Repartition,
    SelectKey,
)
from ottla.streams.plan.tables import Suppress, TableFilter, TableMapValues, ToStream, ToTable
from ottla.streams.reference.aggregates import AggregateByKey, AggregateOfTable
from ottla.streams.reference.change import Operator
from ottla.streams.reference.distinct import FirstOfEachKey
from ottla.streams.reference.foreign_key_join import JoinByForeignKey
from ottla.streams.reference.process import RunProcessor
from ottla.streams.reference.session_windows import SessionWindows
from ottla.streams.reference.sinks import RecordSink, TopicSink
from ottla.streams.reference.sliding_windows import SlidingWindows
from ottla.streams.reference.sources import GlobalTable
from ottla.streams.reference.stateless import (
    BranchOff,
    FilterRecords,
    FlatMapEachValue,
    FlatMapRecords,
    MapEachValue,
    MapRecords,
    PassOn,
    PeekAt,
    SelectAKey,
)
from ottla.streams.reference.stream_join import JoinStreams
from ottla.streams.reference.suppress import HoldBack
from ottla.streams.reference.table_joins import JoinTables, JoinWithGlobalTable, JoinWithTable
from ottla.streams.reference.tables import (
    ChangesAsRecords,
    FilterTable,
    LatestOfEachKey,
    MapTable,
    MoveBetweenGroups,
)
from ottla.streams.reference.time_windows import TimeWindows
from ottla.streams.windows import HoppingWindow, SessionWindow, SlidingWindow, TumblingWindow

TABLE: dict[type[Node], Callable[[Any], Operator]] = {
    StreamSource: PassOn,
    TableSource: LatestOfEachKey,
    GlobalTableSource: GlobalTable,
    Filter: FilterRecords,
    Branch: BranchOff,
    Map: MapRecords,
    MapValues: MapEachValue,
    FlatMap: FlatMapRecords,
    FlatMapValues: FlatMapEachValue,
    SelectKey: SelectAKey,
    Merge: PassOn,
    Repartition: PassOn,
    Peek: PeekAt,
    Distinct: FirstOfEachKey,
    ToTable: LatestOfEachKey,
    ToStream: ChangesAsRecords,
    TableFilter: FilterTable,
    TableMapValues: MapTable,
    Regroup: MoveBetweenGroups,
    TableAggregate: AggregateOfTable,
    Suppress: HoldBack,
    StreamJoin: JoinStreams,
    StreamTableJoin: JoinWithTable,
    TableJoin: JoinTables,
    ForeignKeyJoin: JoinByForeignKey,
    Process: RunProcessor,
}
# Of aggregates and cogroups, by their window.
AGGREGATES: dict[type, Callable[[Any], Operator]] = {
    type(None): AggregateByKey,
    TumblingWindow: TimeWindows,
    HoppingWindow: TimeWindows,
    SlidingWindow: SlidingWindows,
    SessionWindow: SessionWindows,
}
SINKS: dict[type[Node], Callable[[Any], TopicSink | RecordSink]] = {
    To: TopicSink,
    ForEach: RecordSink,
    Print: RecordSink,
}


def operator_of(node: Node, others: Mapping[Node, Operator]) -> Operator:
    """Return the operator of a node, given those of its inputs."""
    if isinstance(node, Aggregate | Cogroup):
        return AGGREGATES[type(node.window)](node)
    if isinstance(node, GlobalTableJoin):
        table = others[node.inputs[1]]
        assert isinstance(table, GlobalTable)
        return JoinWithGlobalTable(node, table)
    return TABLE[type(node)](node)


def sink_of(node: Node) -> TopicSink | RecordSink:
    """Return where records go at a sink, or at an operator that nobody reads."""
    return SINKS.get(type(node), RecordSink)(node)
