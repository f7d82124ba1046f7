"""Operators that remember, on Spark: what Kafka Streams' documentation says of each, written down and run.

Every topology gets its records in two parts: in two micro-batches, or, once for each family of operators, in two
queries on one checkpoint. So what is expected is also what survives a restart.
"""

import datetime
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ottla.client.errors import ClientError
from ottla.client.record import Record
from ottla.streams import (
    App,
    HoppingWindow,
    JoinWindow,
    SessionWindow,
    SlidingWindow,
    Store,
    TimeLimit,
    TumblingWindow,
    WindowClose,
    within,
)
from ottla.streams.processor import Incoming, Processor, ProcessorContext

# The first test of a topology waits for Spark to run it.
pytestmark = pytest.mark.timeout(600)

Given = Mapping[str, Sequence[tuple[Any, Any, int]]]
Written = dict[str, list[tuple[Any, Any, int]]]


@dataclass
class Order:
    product: str | None
    pieces: int


@dataclass
class Basket:
    names: list[str]
    total: int = 0


def run(app: App, *parts: Given, restart: bool = False) -> Written:
    """Run an app on records that come in parts, with a restart between them or without; return what it writes."""
    from ottla.streams.lowering.deployment import Trial
    from ottla.streams.trial import _raw, _source

    plan = app.plan()
    clock, offsets = count(), count()
    found: Written = {}
    with tempfile.TemporaryDirectory(prefix="ottla-test-", ignore_cleanup_errors=True) as directory:
        trial = Trial(app.settings, plan, Path(directory))
        for n, part in enumerate(parts, 1):
            raw = {
                topic: [_raw(topic, each, _source(plan, topic), clock, offsets) for each in records]
                for topic, records in part.items()
            }
            if restart or n == len(parts):
                for record in trial.round(raw, 1):
                    found.setdefault(record.topic, []).append(_plain(record))
            else:
                for topic, records in raw.items():
                    trial._given.setdefault(topic, []).extend(records)
                trial._topics.give(plan.sources, raw, 1)
    return found


def _plain(record: Record) -> tuple[Any, Any, int]:
    key = record.key
    if isinstance(key, tuple):  # Windowed
        key = (key[0], *key[1])
    return key, record.value, record.timestamp


def halves(given: Given, at: int) -> tuple[Given, Given]:
    """Divide records by time."""
    return (
        {topic: [each for each in records if each[2] < at] for topic, records in given.items()},
        {topic: [each for each in records if each[2] >= at] for topic, records in given.items()},
    )


def values(records: list[tuple[Any, Any, int]]) -> list[Any]:
    return [value for _, value, _ in records]


# Tables and aggregates


@pytest.fixture(scope="module")
def gathered(spark: Any) -> Written:
    app = App("gathered")
    words = app.stream("words", value=int)
    words.group_by_key().count().to("count")
    words.group_by_key().reduce(lambda one, other: one + other).to("reduce")
    app.stream("numbers", value=int).group_by(lambda value: value % 2, key=int).aggregate(
        lambda: Basket([]),
        lambda key, value, basket: Basket([*basket.names, f"{key}:{value}"], basket.total + value),
        value=Basket,
    ).to("aggregate")
    lengths = words.group_by_key().cogroup(lambda value, total: total + value, value=int)
    other = app.stream("other").group_by_key()
    lengths.cogroup(other, lambda value, total: total - len(value)).aggregate(lambda: 0).to("cogroup")
    users = app.table("users")
    users.to("table")
    by_region = users.group_by(lambda user, region: (region, len(user)), key=str, value=int)
    by_region.aggregate(lambda: 0, lambda new, total: total + new, lambda old, total: total - old).to(
        "regions"
    )
    given: Given = {
        "words": [
            ("hello", 1, 1),
            ("kafka", 2, 2),
            ("streams", 3, 3),
            ("kafka", 4, 4),
            (None, 9, 5),
            ("kafka", None, 5),
            ("kafka", 5, 15),
            ("streams", 6, 16),
        ],
        "numbers": [("x", 1, 1), ("y", 2, 2), (None, 3, 3), ("z", 4, 4), ("x", 5, 15), ("x", 6, 16)],
        "other": [("hello", "xxx", 2), ("kafka", "x", 17)],
        "users": [
            ("alice", "E", 1),
            ("bob", "A", 2),
            ("charlie", "A", 3),
            ("alice", "A", 14),
            ("charlie", None, 15),
            (None, "E", 16),
            ("bob", "E", 17),
            ("nobody", None, 18),
        ],
    }
    return run(app, *halves(given, 10))


def test_a_count_of_each_key(gathered: Written) -> None:
    assert gathered["count"] == [
        ("hello", 1, 1),
        ("kafka", 1, 2),
        ("streams", 1, 3),
        ("kafka", 2, 4),
        ("kafka", 3, 15),
        ("streams", 2, 16),
    ]


def test_a_reduce_and_an_aggregate_by_another_key(gathered: Written) -> None:
    assert [each[:2] for each in gathered["reduce"]] == [
        ("hello", 1),
        ("kafka", 2),
        ("streams", 3),
        ("kafka", 6),
        ("kafka", 11),
        ("streams", 9),
    ]
    assert gathered["aggregate"][-2:] == [
        (1, Basket(["1:1", "1:3", "1:5"], 9), 15),
        (0, Basket(["0:2", "0:4", "0:6"], 12), 16),
    ]


def test_several_streams_in_one_aggregate(gathered: Written) -> None:
    made = [(key, value) for key, value, _ in gathered["cogroup"]]
    assert [value for key, value in made if key == "hello"] == [1, -2]
    assert [value for key, value in made if key == "kafka"] == [2, 6, 11, 10]


def test_a_table_is_a_changelog_with_tombstones(gathered: Written) -> None:
    assert gathered["table"] == [
        ("alice", "E", 1),
        ("bob", "A", 2),
        ("charlie", "A", 3),
        ("alice", "A", 14),
        ("charlie", None, 15),
        ("bob", "E", 17),
        ("nobody", None, 18),
    ]


def test_a_table_gathered_by_region_adds_and_subtracts(gathered: Written) -> None:
    """The example of Kafka Streams' developer guide."""
    assert [each[:2] for each in gathered["regions"]] == [
        ("E", 5),
        ("A", 3),
        ("A", 10),
        ("E", 0),
        ("A", 15),
        ("A", 8),
        ("A", 5),
        ("E", 3),
    ]


# Windows


@pytest.fixture(scope="module")
def windowed(spark: Any) -> Written:
    app = App("windowed")
    clicks = app.stream("clicks").group_by_key()
    clicks.windowed_by(TumblingWindow(10, grace=5)).count(name="tumbling").to("tumbling")
    clicks.windowed_by(HoppingWindow(10, 5)).count().to("hopping")
    clicks.windowed_by(SlidingWindow(10, grace=100)).reduce(lambda one, other: one + other).to("sliding")
    clicks.windowed_by(SessionWindow(5, grace=10)).aggregate(
        lambda: "", lambda value, so_far: so_far + value, lambda one, other: one + other, value=str
    ).to("sessions")
    clicks.windowed_by(TumblingWindow(10), emit="close").count().to("final")
    held = clicks.windowed_by(TumblingWindow(10, grace=5)).count()
    held.suppress(WindowClose()).to("suppressed")
    clicks.count().suppress(TimeLimit(10)).to("limited")
    given: Given = {
        "clicks": [
            ("a", "p", 1),
            ("b", "q", 3),
            ("a", "r", 12),
            ("a", "s", 9),  # out of order, within the grace
            ("b", "t", 16),
            ("a", "u", 8),  # too late for [0, 10) and its grace of 5
            ("a", "v", 31),
        ]
    }
    first = {"clicks": given["clicks"][:4]}
    return run(app, first, {"clicks": given["clicks"][4:]}, restart=True)


def test_tumbling_windows_with_grace(windowed: Written) -> None:
    assert windowed["tumbling"] == [
        (("a", 0, 10), 1, 1),
        (("b", 0, 10), 1, 3),
        (("a", 10, 20), 1, 12),
        (("a", 0, 10), 2, 9),
        (("b", 10, 20), 1, 16),
        (("a", 30, 40), 1, 31),
    ]


def test_hopping_windows_overlap(windowed: Written) -> None:
    made = {key: value for key, value, _ in windowed["hopping"]}
    assert made == {
        ("a", 0, 10): 1,
        ("b", 0, 10): 1,
        ("a", 5, 15): 2,
        ("a", 10, 20): 1,
        ("b", 10, 20): 1,
        ("b", 15, 25): 1,
        ("a", 25, 35): 1,
        ("a", 30, 40): 1,
    }


def test_sliding_windows_hold_what_is_near(windowed: Written) -> None:
    made = {key[1:]: "".join(sorted(value)) for key, value, _ in windowed["sliding"] if key[0] == "a"}
    assert made == {
        (0, 10): "psu",
        (2, 12): "rsu",
        (9, 19): "rs",
        (10, 20): "r",
        (21, 31): "v",
    }


def test_sessions_merge_with_tombstones(windowed: Written) -> None:
    assert [each for each in windowed["sessions"] if each[0][0] == "a"] == [
        (("a", 1, 1), "p", 1),
        (("a", 12, 12), "r", 12),
        (("a", 12, 12), None, 12),
        (("a", 9, 12), "rs", 12),
        (("a", 9, 12), None, 12),
        (("a", 8, 12), "rsu", 12),
        (("a", 31, 31), "v", 31),
    ]


def test_final_results_leave_once_when_their_window_closes(windowed: Written) -> None:
    assert windowed["final"] == [
        (("a", 0, 10), 1, 1),
        (("b", 0, 10), 1, 3),
        (("a", 10, 20), 1, 12),
        (("b", 10, 20), 1, 16),
    ]
    assert windowed["suppressed"] == [
        (("a", 0, 10), 2, 9),
        (("b", 0, 10), 1, 3),
        (("a", 10, 20), 1, 12),
        (("b", 10, 20), 1, 16),
    ]


def test_changes_are_held_for_a_time(windowed: Written) -> None:
    # A first change of a waits from 1 to 11, one of b from 3 to 13, the next of a from 12 to 22; the last one leaves.
    assert windowed["limited"] == [("a", 2, 12), ("b", 2, 16), ("a", 5, 31)]


# Joins

LEFT = [
    ("k", None, 1),
    ("k", "A", 3),
    ("k", "B", 5),
    ("k", None, 7),
    ("k", "C", 9),
    ("k", None, 12),
    ("k", "D", 15),
]
RIGHT = [
    ("k", None, 2),
    ("k", "a", 4),
    ("k", "b", 6),
    ("k", None, 8),
    ("k", "c", 10),
    ("k", None, 11),
    ("k", None, 13),
    ("k", "d", 14),
]


def pair(left: Any, right: Any) -> str:
    return f"{left or '-'}{right or '-'}"


@pytest.fixture(scope="module")
def joined(spark: Any) -> Written:
    app = App("joined")
    left, right = app.stream("left"), app.stream("right")
    left.join(right, pair, within=within(15, grace=5)).to("inner")
    left.left_join(right, pair, within=within(15, grace=5)).to("left-alone")
    left.outer_join(right, pair, within=within(15, grace=5)).to("outer")
    left.join(right, pair, within=JoinWindow(2, 1)).to("lopsided")
    row = app.table("row")
    left.join(row, pair).to("stream-table")
    left.left_join(row, pair).to("stream-table-left")
    one, other = app.table("one"), app.table("other")
    one.join(other, pair).to("table-inner")
    one.left_join(other, pair).to("table-left")
    one.outer_join(other, pair).to("table-outer")
    given: Given = {
        "left": [*LEFT, ("k", "E", 40), ("k", "F", 61), ("k", "G", 103)],
        "right": [*RIGHT, ("k", "f", 82)],
        "row": RIGHT,
        "one": LEFT,
        "other": RIGHT,
    }
    return run(app, *halves(given, 8))


INNER = ["Aa", "Ba", "Ab", "Bb", "Ca", "Cb", "Ac", "Bc", "Cc", "Ad", "Bd", "Cd", "Da", "Db", "Dc", "Dd"]


def test_two_streams(joined: Written) -> None:
    assert values(joined["inner"]) == INNER
    assert values(joined["left-alone"]) == [*INNER, "E-", "F-"]
    assert values(joined["outer"]) == [*INNER, "E-", "F-", "-f"]
    # Right may be two earlier or one later.
    assert values(joined["lopsided"]) == ["Aa", "Ba", "Bb", "Cc", "Dd"]


def test_a_stream_and_a_table(joined: Written) -> None:
    assert [each for each in joined["stream-table"] if each[2] <= 15] == [("k", "Ba", 5), ("k", "Dd", 15)]
    assert values(joined["stream-table-left"])[:4] == ["A-", "Ba", "C-", "Dd"]


def test_two_tables(joined: Written) -> None:
    inner = {4: "Aa", 5: "Ba", 6: "Bb", 7: None, 10: "Cc", 11: None, 15: "Dd"}
    assert {time: value for _, value, time in joined["table-inner"]} == inner
    left = {3: "A-", 4: "Aa", 5: "Ba", 6: "Bb", 7: None, 9: "C-", 10: "Cc", 11: "C-", 12: None, 15: "Dd"}
    assert {time: value for _, value, time in joined["table-left"]} == left
    outer = {**left, 7: "-b", 8: None, 14: "-d"}
    assert {time: value for _, value, time in joined["table-outer"]} == outer


@pytest.fixture(scope="module")
def looked_up(spark: Any) -> Written:
    app = App("looked-up")
    orders, products = app.table("orders", value=Order), app.table("products")
    named = orders.join(
        products, lambda order, name: f"{order.pieces} {name}", on=lambda order: order.product, value=str
    )
    named.to("named")
    orders.left_join(
        products, lambda order, name: f"{order.pieces} {name}", on=lambda order: order.product, value=str
    ).to("perhaps-named")
    prices = app.global_table("prices", value=int)
    sales = app.stream("sales", value=Order)
    sales.join(prices, lambda sale, price: sale.pieces * price, on=lambda sale: sale.product, value=int).to(
        "paid"
    )
    sales.left_join(
        prices, lambda key, sale, price: f"{key} {price}", on=lambda sale: sale.product, value=str
    ).to("perhaps-paid")
    given: Given = {
        "orders": [
            ("k", Order("1", 1), 1),
            ("k", Order("2", 2), 2),
            ("k", Order("3", 3), 3),
            ("k", None, 15),
            ("k", Order("1", 6), 16),
            ("q", Order("10", 7), 17),
            ("r", Order("10", 8), 18),
            ("s", Order(None, 9), 18),
        ],
        "products": [("1", "foo", 0), ("3", "bar", 14), ("10", "baz", 19)],
        "prices": [("p", 5, 0), ("q", 7, 0), ("p", 6, 1), ("q", None, 2)],
        "sales": [("x", Order("p", 2), 1), ("y", Order("q", 2), 2), ("z", Order(None, 1), 3), ("z", None, 4)],
    }
    return run(app, *halves(given, 10))


def test_tables_by_a_foreign_key(looked_up: Written) -> None:
    """The table of Kafka Streams' developer guide, and a row that refers to nothing."""
    assert [each[:2] for each in looked_up["named"]] == [
        ("k", "1 foo"),
        ("k", None),
        ("k", None),
        ("k", "3 bar"),
        ("k", None),
        ("k", "6 foo"),
        ("q", "7 baz"),
        ("r", "8 baz"),
    ]
    assert sorted(each[:2] for each in looked_up["perhaps-named"] if each[1]) == [
        ("k", "1 foo"),
        ("k", "2 None"),
        ("k", "3 None"),
        ("k", "3 bar"),
        ("k", "6 foo"),
        ("q", "7 None"),
        ("q", "7 baz"),
        ("r", "8 None"),
        ("r", "8 baz"),
        ("s", "9 None"),
    ]


def test_a_stream_and_a_global_table(looked_up: Written) -> None:
    assert looked_up["paid"] == [("x", 12, 1)]
    assert values(looked_up["perhaps-paid"]) == ["x 6", "y None", "z None"]


# Processors


class Averages(Processor):
    """Forwards the average of a key every 10 of stream time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.sums = context.store("sums")
        context.schedule(10, self.tell)

    def process(self, record: Incoming) -> None:
        total, number = self.sums.get(record.key, (0, 0))
        self.sums[record.key] = (total + record.value, number + 1)

    def tell(self, time: int) -> None:
        for key, (total, number) in self.sums.items():
            self.context.forward(key, total / number)


@pytest.fixture(scope="module")
def processed(spark: Any) -> Written:
    app = App("processed")
    numbers = app.stream("numbers", value=int)
    sums = Store("sums", str, tuple[int, int])
    numbers.process(Averages, stores=[sums], value=float).to("averages")
    given: Given = {
        "numbers": [("a", 1, 3), ("b", 4, 4), ("a", 2, 9), ("a", 6, 12), ("b", 6, 19), ("b", 8, 25)]
    }
    return run(app, *halves(given, 10), restart=True)


def test_a_processor_with_a_store_and_a_timer(processed: Written) -> None:
    assert processed["averages"] == [
        ("a", 1.0, 3),
        ("a", 3.0, 12),
        ("b", 4.0, 12),
        ("a", 3.0, 25),
        ("b", 6.0, 25),
    ]


# What needs more than records


class Ticking(Processor):
    """Forwards the time on the wall now and then."""

    wall_clock = True

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("50 ms", self.tick, clock="wall")

    def process(self, record: Incoming) -> None:
        self.context.forward(record.key, self.context.now)

    def tick(self, time: int) -> None:
        self.context.forward("tick", time)


def test_the_clock_on_the_wall_wakes_a_processor_without_records(spark: Any, tmp_path: Path) -> None:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.execution import Execution

    app = App("ticking")
    app.stream("given").process(Ticking, value=int)
    schema = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
        "headers array<struct<key:string,value:binary>>"
    )
    rows = [(b"a", b"x", "given", 0, 0, datetime.datetime.fromtimestamp(1, datetime.UTC), None)]
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "given"))
    given = spark.readStream.schema(schema).parquet(str(tmp_path / "given"))
    context = Context(spark=spark, app="ticking", read=lambda node: given, partitions=1)
    frame = Execution(app.plan(), context).stream().select("seen_0.*")
    found: list[tuple[str, int]] = []
    query = (
        frame.writeStream.foreachBatch(
            lambda batch, n: found.extend((row.key, row.value) for row in batch.collect())
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        for _ in range(400):
            if len(found) >= 4 or not query.isActive:
                break
            query.awaitTermination(0.1)
    finally:
        query.stop()
    assert [key for key, _ in found[:4]] == ["a", "tick", "tick", "tick"]
    times = [time for _, time in found]
    assert times == sorted(times)
    assert times[0] > 1_500_000_000_000


@pytest.fixture(scope="module")
def plain(spark: Any) -> Written:
    """What a topology of few operators gives out, with one change a key and micro-batch."""
    app = App("plain", updates="last")
    clicks = app.stream("clicks")
    clicks.distinct().to("first")
    clicks.distinct(within=5).to("first-in-a-while")
    clicks.group_by_key().count().to("count")
    clicks.left_join(app.stream("views"), pair, within=20).to("seen")
    app.table("names").join(app.table("views"), pair).to("named")
    given: Given = {
        "clicks": [
            ("a", "p", 1),
            ("b", "q", 2),
            ("a", "r", 3),
            ("a", "s", 12),
            ("b", "t", 13),
            ("c", "u", 90),
        ],
        "views": [("a", "P", 11), ("b", None, 11)],
        "names": [("a", "N", 1), ("b", "M", 2), ("a", "O", 12)],
    }
    return run(app, *halves(given, 10), restart=True)


def test_the_first_record_of_a_key(plain: Written) -> None:
    assert plain["first"] == [("a", "p", 1), ("b", "q", 2), ("c", "u", 90)]
    assert values(plain["first-in-a-while"]) == ["p", "q", "s", "t", "u"]


def test_one_change_a_key_and_micro_batch(plain: Written) -> None:
    assert plain["count"] == [("b", 1, 2), ("a", 2, 3), ("a", 3, 12), ("b", 2, 13), ("c", 1, 90)]


def test_joins_after_a_restart(plain: Written) -> None:
    assert values(plain["seen"]) == ["pP", "rP", "sP", "q-", "t-"]
    assert plain["named"] == [("a", "OP", 12)]


class Numbering(Processor):
    """Puts before each value the how manieth of its key it is."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store("seen")

    def process(self, record: Incoming) -> None:
        number = self.seen[record.key] = self.seen.get(record.key, 0) + 1
        self.context.forward(record.key, f"{number} {record.value}")


@pytest.fixture(scope="module")
def kept(spark: Any) -> Written:
    """Streams that become tables, tables that are reduced by another key, two streams in one window, values alone."""
    app = App("kept")
    clicks, views = app.stream("clicks"), app.stream("views")
    clicks.to_table().to("to-table")
    clicks.filter(lambda key, value: key is not None).process_values(
        Numbering, stores=[Store("seen", str, int)], name="numbering"
    ).to("numbered")
    both = clicks.group_by_key().cogroup(lambda value, so_far: so_far + value, value=str)
    both.cogroup(views.group_by_key(), lambda value, so_far: so_far + value.upper()).windowed_by(
        TumblingWindow(10)
    ).aggregate(lambda: "").to("together")
    sales = app.table("sales", value=Order)
    sales.group_by(lambda key, sale: (sale.product, sale.pieces), key=str, value=int).reduce(
        lambda so_far, new: so_far + new, lambda so_far, old: so_far - old
    ).to("sold")
    given: Given = {
        "clicks": [("a", "p", 1), ("b", "q", 3), (None, "x", 4), ("a", "r", 12), ("b", None, 13)],
        "views": [("a", "v", 2), ("a", "w", 11)],
        "sales": [
            ("1", Order("tea", 2), 1),
            ("2", Order("tea", 3), 2),
            ("1", Order("tea", 5), 11),  # the same group: out with the 2, in with the 5, one result
            ("2", Order("jam", 3), 12),
            ("1", None, 13),
        ],
    }
    return run(app, *halves(given, 10), restart=True)


def test_a_stream_becomes_a_table(kept: Written) -> None:
    """A record without a key is dropped, one without a value deletes its row."""
    assert kept["to-table"] == [("a", "p", 1), ("b", "q", 3), ("a", "r", 12), ("b", None, 13)]


def test_a_processor_of_values_keeps_keys(kept: Written) -> None:
    assert kept["numbered"] == [("a", "1 p", 1), ("b", "1 q", 3), ("a", "2 r", 12), ("b", "2 None", 13)]


def test_several_streams_in_one_aggregate_by_windows(kept: Written) -> None:
    assert kept["together"] == [
        (("a", 0, 10), "p", 1),
        (("a", 0, 10), "pV", 2),
        (("b", 0, 10), "q", 3),
        (("a", 10, 20), "W", 11),
        (("a", 10, 20), "Wr", 12),
    ]


def test_a_table_reduced_by_another_key(kept: Written) -> None:
    """What a row was is taken out of its old group before what it is goes into its new one."""
    assert [each[:2] for each in kept["sold"]] == [
        ("tea", 2),
        ("tea", 5),
        ("tea", 8),
        ("tea", 5),
        ("jam", 3),
        ("tea", 0),
    ]


def test_a_count_by_sparks_own_aggregation(spark: Any) -> None:
    app = App("native", updates="last", native=True)
    app.stream("clicks").group_by_key().count().to("count")
    given: Given = {
        "clicks": [
            ("a", "p", 1),
            ("b", "q", 2),
            ("a", "r", 3),
            (None, "x", 3),
            ("a", None, 4),
            ("a", "s", 12),
        ]
    }
    made = run(app, *halves(given, 10))
    assert sorted(made["count"]) == [("a", 2, 3), ("a", 3, 12), ("b", 1, 2)]


def test_sparks_own_aggregation_counts_by_the_bytes_of_keys(spark: Any) -> None:
    app = App("native-keys", updates="last", native=True)
    app.stream("t", key=float).group_by_key().count().to("o")
    nan = math.nan
    given: Given = {"t": [(0.0, "x", 1), (-0.0, "x", 2), (nan, "x", 3), (-nan, "x", 4), (-0.0, "x", 5)]}
    made = run(app, given)["o"]
    assert sorted((str(key), value) for key, value, _ in made) == [("-0.0", 2), ("0.0", 1), ("nan", 2)]


def test_a_failure_names_the_operator_and_the_record(spark: Any) -> None:
    from ottla.spark import SparkFailure

    def broken(one: int, other: int) -> int:
        return one // other

    app = App("broken")
    app.stream("numbers", value=int).group_by_key().reduce(broken, name="dividing").to("reduced")
    with pytest.raises(SparkFailure, match=r"dividing: ZeroDivisionError.*numbers-0@1"):
        app.test({"numbers": [("a", 1, 1), ("a", 0, 2)]})


def test_a_global_table_follows_its_topic(broker: Any, topic_name: str) -> None:
    from ottla.client.blocking import Admin, Producer
    from ottla.streams.lowering.stateful.replica import Place, Replica
    from ottla.streams.types.serde import serde

    with Admin(broker.bootstrap) as admin:
        admin.topics.create([topic_name], partitions=3)
    replica = Replica(Place(topic_name, broker.bootstrap, (), serde(str), serde(str)))
    try:
        assert len(replica.refresh()) == 0
        with Producer(broker.bootstrap) as producer:
            for n in range(20):
                producer.send_and_wait(topic_name, f"v{n}".encode(), key=f"k{n % 7}".encode())
            rows = replica.refresh()
            assert [rows.find(f"k{n}") for n in range(8)] == [
                "v14",
                "v15",
                "v16",
                "v17",
                "v18",
                "v19",
                "v13",
                None,
            ]
            producer.send_and_wait(topic_name, None, key=b"k0")
            producer.send_and_wait(topic_name, b"v99", key=b"k1")
            producer.send_and_wait(topic_name, b"ignored")
        rows = replica.refresh()
        assert [rows.find(f"k{n}") for n in range(3)] == [None, "v99", "v16"]
        with Admin(broker.bootstrap) as admin:
            admin.topics.add_partitions({topic_name: 5})
        assert len(replica.refresh()) == 6
    finally:
        replica.close()


def test_a_global_table_without_its_topic_says_so(broker: Any) -> None:
    from ottla.streams import StreamsError
    from ottla.streams.lowering.stateful.replica import Place, rows_of
    from ottla.streams.types.serde import serde

    settings = (("allow.auto.create.topics", "false"), ("default.api.timeout.ms", "1000"))
    with pytest.raises((StreamsError, ClientError), match="nowhere"):
        rows_of(Place("nowhere", broker.bootstrap, settings, serde(str), serde(str)))
