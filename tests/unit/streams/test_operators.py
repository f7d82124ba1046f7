"""Every operator has a test whose expected output is what Kafka Streams documents: the table of which is here.

On the right is the test that runs it on Spark; tests/unit/streams/stateful asks more of those that keep state, among
it the tables of Kafka Streams' developer guide, and that it does not matter where micro-batches end.
"""

import re
from pathlib import Path

from ottla.streams import App
from ottla.streams.grouped import Cogrouped, GroupedStream, GroupedTable
from ottla.streams.stream import Stream
from ottla.streams.table import Table

SPARK = Path(__file__).parents[2] / "spark"
FACES = (App, Stream, Table, GroupedStream, Cogrouped, GroupedTable)
# Of an app what is no operator.
NO_OPERATORS = {"name", "plan", "describe", "run", "start", "test", "settings"}

STATELESS = "stateless.test_what_an_operator_gives"
TABLE = {
    # ours                          Kafka Streams                        the test
    "App.stream": ("StreamsBuilder.stream", "stateless.test_several_topics_and_patterns"),
    "App.table": ("StreamsBuilder.table", "stateful.test_a_table_is_a_changelog_with_tombstones"),
    "App.global_table": ("StreamsBuilder.globalTable", "stateful.test_a_stream_and_a_global_table"),
    "Stream.filter": ("KStream.filter", STATELESS),
    "Stream.filter_not": ("KStream.filterNot", STATELESS),
    "Stream.map": ("KStream.map", STATELESS),
    "Stream.map_values": ("KStream.mapValues", STATELESS),
    "Stream.flat_map": ("KStream.flatMap", STATELESS),
    "Stream.flat_map_values": ("KStream.flatMapValues", STATELESS),
    "Stream.select_key": ("KStream.selectKey", STATELESS),
    "Stream.branch": ("KStream.split", STATELESS),
    "Stream.split": ("KStream.split", STATELESS),
    "Stream.merge": ("KStream.merge", STATELESS),
    "Stream.peek": ("KStream.peek", "stateless.test_peek_is_called_with_every_record"),
    "Stream.repartition": ("KStream.repartition", "stateless.test_repartition_keeps_the_order_within_a_key"),
    "Stream.distinct": ("KStream.process", "stateful.test_the_first_record_of_a_key"),
    "Stream.to": ("KStream.to", "stateless.test_partitions_are_as_told"),
    "Stream.for_each": ("KStream.foreach", "stateless.test_for_each_and_print"),
    "Stream.print": ("KStream.print", "stateless.test_for_each_and_print"),
    "Stream.to_table": ("KStream.toTable", "stateful.test_a_stream_becomes_a_table"),
    "Stream.group_by_key": ("KStream.groupByKey", "stateful.test_a_count_of_each_key"),
    "Stream.group_by": ("KStream.groupBy", "stateful.test_a_reduce_and_an_aggregate_by_another_key"),
    "Stream.join": ("KStream.join", "stateful.test_two_streams, test_a_stream_and_a_table"),
    "Stream.left_join": ("KStream.leftJoin", "stateful.test_two_streams, test_a_stream_and_a_table"),
    "Stream.outer_join": ("KStream.outerJoin", "stateful.test_two_streams"),
    "Stream.process": ("KStream.process", "stateful.test_a_processor_with_a_store_and_a_timer"),
    "Stream.process_values": ("KStream.processValues", "stateful.test_a_processor_of_values_keeps_keys"),
    "GroupedStream.count": ("KGroupedStream.count", "stateful.test_a_count_of_each_key"),
    "GroupedStream.reduce": (
        "KGroupedStream.reduce",
        "stateful.test_a_reduce_and_an_aggregate_by_another_key",
    ),
    "GroupedStream.aggregate": (
        "KGroupedStream.aggregate",
        "stateful.test_a_reduce_and_an_aggregate_by_another_key, test_sessions_merge_with_tombstones",
    ),
    "GroupedStream.cogroup": ("KGroupedStream.cogroup", "stateful.test_several_streams_in_one_aggregate"),
    "GroupedStream.windowed_by": (
        "KGroupedStream.windowedBy",
        "stateful.test_tumbling_windows_with_grace, test_hopping_windows_overlap, "
        "test_sliding_windows_hold_what_is_near, test_sessions_merge_with_tombstones, "
        "test_final_results_leave_once_when_their_window_closes",
    ),
    "Cogrouped.cogroup": ("CogroupedKStream.cogroup", "stateful.test_several_streams_in_one_aggregate"),
    "Cogrouped.aggregate": ("CogroupedKStream.aggregate", "stateful.test_several_streams_in_one_aggregate"),
    "Cogrouped.windowed_by": (
        "CogroupedKStream.windowedBy",
        "stateful.test_several_streams_in_one_aggregate_by_windows",
    ),
    "Table.filter": ("KTable.filter", "stateless.test_tables"),
    "Table.filter_not": ("KTable.filterNot", "stateless.test_tables"),
    "Table.map_values": ("KTable.mapValues", "stateless.test_tables"),
    "Table.to_stream": ("KTable.toStream", "stateless.test_tables"),
    "Table.to": ("KTable.toStream.to", "stateful.test_a_table_is_a_changelog_with_tombstones"),
    "Table.group_by": ("KTable.groupBy", "stateful.test_a_table_gathered_by_region_adds_and_subtracts"),
    "Table.join": ("KTable.join", "stateful.test_two_tables, test_tables_by_a_foreign_key"),
    "Table.left_join": ("KTable.leftJoin", "stateful.test_two_tables, test_tables_by_a_foreign_key"),
    "Table.outer_join": ("KTable.outerJoin", "stateful.test_two_tables"),
    "Table.suppress": (
        "KTable.suppress",
        "stateful.test_final_results_leave_once_when_their_window_closes, test_changes_are_held_for_a_time",
    ),
    "GroupedTable.count": ("KGroupedTable.count", "stateless.test_tables"),
    "GroupedTable.reduce": ("KGroupedTable.reduce", "stateful.test_a_table_reduced_by_another_key"),
    "GroupedTable.aggregate": (
        "KGroupedTable.aggregate",
        "stateful.test_a_table_gathered_by_region_adds_and_subtracts",
    ),
}


def test_every_operator_is_in_the_table() -> None:
    operators = {
        f"{face.__name__}.{name}"
        for face in FACES
        for name in vars(face)
        if not name.startswith("_") and not (face is App and name in NO_OPERATORS)
    }
    assert operators == TABLE.keys()


def test_every_test_of_the_table_is_there() -> None:
    for _, tests in TABLE.values():
        file, _, names = tests.partition(".")
        there = re.findall(r"^def (test_\w+)", (SPARK / f"test_streams_{file}.py").read_text(), re.M)
        assert set(names.split(", ")) <= set(there), tests


def test_what_the_one_test_of_many_runs_is_expected() -> None:
    """The test that is named most often has an expected output for each of its operators."""
    text = (SPARK / "test_streams_stateless.py").read_text()
    for operator, (_, test) in TABLE.items():
        name = operator.partition(".")[2]
        if test == STATELESS:
            assert re.search(rf'^    "{name}(-\w+)?": \[', text, re.M), operator
