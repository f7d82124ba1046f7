"""Whole topologies: rows leave in the order in which Kafka Streams writes them, and each operator runs once."""

from collections import Counter
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams import (
    App,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    Store,
    Stream,
    TimeLimit,
    TumblingWindow,
    WindowClose,
    within,
)
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.execution import Execution
from ottla.streams.lowering.lower import STAGES
from ottla.streams.processor import Incoming, Processor, ProcessorContext
from tests.unit.streams.stateful.chain import Chain, Given, run

NUMBERS: Given = {("t", 0): [("a", n, n) for n in (1, 9, 2, 8, 3)]}


def values(rows: list[tuple[str, Any, Any]]) -> list[Any]:
    return [value for *_, value in rows]


def python(given: Any) -> Any:
    return given


def test_what_took_different_branches_is_written_in_its_order() -> None:
    app = App("order")
    small, large = app.stream("t", value=int).branch(lambda v: v < 5, lambda v: python(v) >= 5)
    small.to("o")
    large.to("o")
    assert values(run(app, NUMBERS)) == [1, 9, 2, 8, 3]


def test_what_was_branched_and_merged_is_in_its_order() -> None:
    app = App("order")
    small, large = app.stream("t", value=int).branch(lambda v: v < 5, lambda v: True)
    small.map_values(lambda v: v * 10).merge(large).to("o")
    assert values(run(app, NUMBERS)) == [10, 9, 20, 8, 30]


def test_of_one_record_depth_goes_first_and_who_was_said_first() -> None:
    app = App("order")
    numbers = app.stream("t", value=int)
    numbers.map_values(lambda v: v * 100).to("o")
    both = numbers.flat_map_values(lambda v: [v, -v], value=int)
    both.to("o")
    both.map_values(lambda v: v * 10).to("o")
    rows = values(run(app, {("t", 0): [("a", 1, 0), ("a", 2, 0)]}))
    assert rows == [100, 1, 10, -1, -10, 200, 2, 20, -2, -20]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_a_stream_and_its_count_in_one_topic(partitions: int, first: bool) -> None:
    app = App("order")
    numbers = app.stream("t", value=int)
    if first:
        numbers.map_values(lambda v: v * 100).to("o")
    numbers.group_by_key().count().to_stream().to("o")
    if not first:
        numbers.map_values(lambda v: v * 100).to("o")
    given = {("t", 0): [("a", 1, 1), ("b", 2, 2), ("a", 3, 3), ("a", 4, 4)]}
    rows = run(app, given, partitions=partitions)
    own = [value for _, key, value in rows if key == "a"]
    assert own == ([100, 1, 300, 2, 400, 3] if first else [1, 100, 2, 300, 3, 400])


def test_what_goes_through_another_topic_comes_after_all_that_its_record_did_before() -> None:
    app = App("order")
    numbers = app.stream("t", value=int)
    numbers.group_by(lambda v: "all").count().to_stream().to("o")
    numbers.select_key(lambda v: "all").to("o")
    assert values(run(app, NUMBERS)) == [1, 1, 9, 2, 2, 3, 8, 4, 3, 5]


def test_a_stream_may_meet_itself() -> None:
    app = App("self")
    numbers = app.stream("t", value=int)
    numbers.merge(numbers).to("twice")
    numbers.join(numbers, lambda a, b: a * 10 + b, value=int, within=within(1)).to("joined")
    rows = run(app, {("t", 0): [("a", 1, 1), ("a", 2, 9)]})
    assert [value for topic, _, value in rows if topic == "twice"] == [1, 1, 2, 2]
    assert [value for topic, _, value in rows if topic == "joined"] == [11, 22]


def test_one_change_a_key_and_micro_batch_is_in_its_place() -> None:
    app = App("last")
    numbers = app.stream("t", value=int)
    numbers.map_values(lambda v: v * 100).to("o")
    numbers.group_by_key().count().to_stream().to("o")
    given = {("t", 0): [("a", 1, 1), ("a", 2, 2), ("b", 3, 3), ("a", 4, 4), ("b", 5, 5)]}
    rows = run(app, given, given, updates="last")
    assert values(rows) == [100, 200, 300, 400, 3, 500, 2, 100, 200, 300, 400, 6, 500, 4]


class Marking(Processor):
    """Writes down that it was called."""

    called: ClassVar[Counter[str]] = Counter()

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store("seen")

    def process(self, record: Incoming) -> None:
        Marking.called[record.key] += 1
        self.seen[record.key] = self.seen.get(record.key, 0) + 1
        self.context.forward(record.key, self.seen[record.key])


def marked(app: App) -> None:
    found = app.stream("t", value=int).process(Marking, stores=[Store("seen", str, int)])
    found.to("one")
    found.filter(lambda v: v > 1).map_values(lambda v: v * 10).to("two")
    found.group_by_key().reduce(lambda one, other: one + other).to_stream().to("sums")


def test_an_operator_that_many_read_runs_once() -> None:
    app = App("once")
    marked(app)
    Marking.called.clear()
    chain = Chain(app)
    rows = [row[1:] for _ in range(2) for row in chain.batch({("t", 0): [("a", 1, 1), ("a", 1, 2)]})]
    assert Marking.called == {"a": 4}
    assert chain.steps == ["process-1", "aggregate-1"] * 2
    assert rows == [
        ("one", "a", 1),
        ("sums", "a", 1),
        ("one", "a", 2),
        ("two", "a", 20),
        ("sums", "a", 3),
        ("one", "a", 3),
        ("two", "a", 30),
        ("sums", "a", 6),
        ("one", "a", 4),
        ("two", "a", 40),
        ("sums", "a", 10),
    ]


called: Counter[str] = Counter()


def noted(name: str, result: Any) -> Any:
    """Note that a function was called."""
    called[name] += 1
    return result


def add(value: Any, total: Any) -> Any:
    return noted("add", (total or 0) + value)


def pair(one: Any, other: Any) -> Any:
    return noted("pair", (one or 0) * 100 + (other or 0))


def stream(app: App, topic: str = "t") -> Any:
    return app.stream(topic, value=int)


def table(app: App, topic: str = "t") -> Any:
    return app.table(topic, value=int)


def windowed(app: App, window: Any, emit: str = "update") -> Any:
    found = stream(app).group_by_key().windowed_by(window, emit=emit)
    return found.aggregate(int, add, lambda one, other: noted("merge", one + other), value=int) if isinstance(
        window, SessionWindow
    ) else found.aggregate(int, add, value=int)  # fmt: skip


# Every kind of operator that keeps state, and how many stages it is.
KEEPING: dict[str, tuple[Any, int]] = {
    "count": (lambda app: stream(app).group_by_key().count(), 1),
    "reduce": (lambda app: stream(app).group_by_key().reduce(add), 1),
    "aggregate": (lambda app: stream(app).group_by_key().aggregate(int, add, value=int), 1),
    "cogroup": (
        lambda app: stream(app).group_by_key().cogroup(add, value=int).cogroup(stream(app, "u").group_by_key(), add)
        .aggregate(int), 1,
    ),
    "tumbling": (lambda app: windowed(app, TumblingWindow(4)), 1),
    "hopping": (lambda app: windowed(app, HoppingWindow(6, 2)), 1),
    "sliding": (lambda app: windowed(app, SlidingWindow(3)), 1),
    "session": (lambda app: windowed(app, SessionWindow(2)), 1),
    "closing": (lambda app: windowed(app, TumblingWindow(4), "close"), 1),
    "table": (lambda app: table(app).filter(lambda v: noted("filter", v > 1)), 1),
    "to_table": (lambda app: stream(app).to_table().filter(lambda v: noted("filter", v > 1)), 1),
    "table aggregate": (
        lambda app: (
            table(app).group_by(lambda k, v: (str(v % 2), v), key=str, value=int).reduce(add, lambda a, b: a - b)
        ),
        2,
    ),
    "suppress": (lambda app: table(app).suppress(TimeLimit(3)), 2),
    "final": (lambda app: windowed(app, TumblingWindow(4)).suppress(WindowClose()), 2),
    "distinct": (lambda app: stream(app).distinct(within=2), 1),
    "streams": (lambda app: stream(app).outer_join(stream(app, "u"), pair, value=int, within=within(3)), 1),
    "stream and table": (lambda app: stream(app).left_join(table(app, "u"), pair, value=int), 1),
    "tables": (lambda app: table(app).outer_join(table(app, "u"), pair, value=int), 1),
    "foreign key": (
        lambda app: table(app).left_join(table(app, "u"), pair, value=int, on=lambda v: noted("on", "ab"[v % 2])), 3,
    ),
    "process": (lambda app: stream(app).process(Marking, stores=[Store("seen", str, int)]), 1),
    "process_values": (lambda app: stream(app).process_values(Marking, stores=[Store("seen", str, int)]), 1),
}  # fmt: skip


def read_by(app: App, kind: str, readers: int) -> None:
    """An operator, with one reader or with several, one of which keeps state as well."""
    found, _ = KEEPING[kind]
    flowing = found(app)
    flowing = flowing if isinstance(flowing, Stream) else flowing.to_stream(name="changes")
    flowing.to("one")
    if readers > 1:
        flowing.filter(lambda k, v: v is not None and v > 1).to("two")
        flowing.map(lambda k, v: (str(k), v), key=str, value=int).group_by_key().count(name="again").to(
            "three"
        )
        flowing.for_each(print)


@pytest.mark.parametrize("kind", KEEPING)
def test_every_operator_with_state_runs_once_a_micro_batch(kind: str) -> None:
    """However many read it: its functions are called as often as for one reader, and so is it."""
    rows = [("tu"[n % 3 == 0], "ab"[n % 2], n % 5, n) for n in range(24)]
    found = []
    for readers in (1, 4):
        app = App("once")
        read_by(app, kind, readers)
        chain = Chain(app)
        called.clear()
        Marking.called.clear()
        out = [row[1:] for given in batches_of(rows, [5, 11, 17]) for row in chain.batch(given)]
        steps = Counter(each for each in chain.steps if each != "again")
        found.append((called.copy(), Marking.called.copy(), steps, [row for row in out if row[0] == "one"]))
        names = [each.node.name for each in chain.execution.flow.stages]
        assert len(names) == len(set(names)) == KEEPING[kind][1] + (readers > 1)
        assert max(steps.values()) == 4
    one, several = found
    assert one == several
    assert one[3]


def test_no_kind_of_operator_with_state_is_left_out() -> None:
    kinds = {type(each) for kind in KEEPING for each in _kept(kind)}
    assert kinds == set(STAGES)


def _kept(kind: str) -> list[Any]:
    app = App("once")
    KEEPING[kind][0](app)
    return [each for each in app.plan().nodes if each.stateful]


def everything(app: App) -> None:
    """Operators of every kind, read by several others, and several ways to one topic."""
    one, other = app.stream("t", value=int), app.stream("u", value=int)
    table = app.table("v", value=int)
    counts = one.group_by_key().count()
    counts.to("counts")
    counts.to_stream().map_values(lambda v: v + 1000).to("mixed")
    one.map_values(lambda v: v + 2000).to("mixed")
    joined = one.join(other, lambda a, b: a + b, value=int, within=within(10))
    joined.to("joined")
    joined.left_join(table, lambda a, b: a * 10 + (b or 0), value=int).to("mixed")
    small, large = one.branch(lambda v: v < 3, lambda v: True)
    small.merge(large.map_values(lambda v: -v)).distinct(within=5).to("mixed")
    one.group_by_key().windowed_by(TumblingWindow(20, grace=5)).count().to_stream().map(
        lambda k, v: (k.key, v), key=str, value=int
    ).to("windows")
    grouped = table.group_by(lambda k, v: (str(v % 2), v), key=str, value=int)
    grouped.reduce(lambda a, b: a + b, lambda a, b: a - b).to("groups")
    table.join(counts, lambda a, b: a + b, value=int).to("tables")
    table.filter(lambda v: v > 2).to_stream().for_each(print)


records_given = st.lists(
    st.tuples(st.sampled_from("tuv"), st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 40)),
    max_size=12,
)


def batches_of(rows: list[tuple[str, str, int, int]], cuts: list[int]) -> list[Given]:
    """Micro-batches of records that come in the order of their times, as far as topics go."""
    edges = [0, *sorted({cut for cut in cuts if cut < len(rows)}), len(rows)]
    found: list[Given] = []
    for start, end in pairwise(edges):
        batch: dict[tuple[str, int], list[tuple[Any, Any, int]]] = {}
        for topic, key, value, time in rows[start:end]:
            batch.setdefault((topic, 0), []).append((key, value, time))
        found.append(batch)
    return found


def by_key(rows: list[tuple[str, Any, Any]]) -> dict[tuple[str, Any], list[Any]]:
    found: dict[tuple[str, Any], list[Any]] = {}
    for topic, key, value in rows:
        found.setdefault((topic, key), []).append(value)
    return found


@settings(max_examples=25, deadline=None)
@given(rows=records_given, cuts=st.lists(st.integers(1, 11), max_size=3), seed=st.integers(0, 99))
def test_what_leaves_does_not_depend_on_micro_batches(
    rows: list[tuple[str, str, int, int]], cuts: list[int], seed: int
) -> None:
    # Between topics time decides, so that they come in its order.
    rows = [(topic, key, value, n) for n, (topic, key, value, _) in enumerate(rows)]
    app = App("all")
    everything(app)
    whole = by_key(run(app, *batches_of(rows, [])))
    assert by_key(run(app, *batches_of(rows, cuts), seed=seed)) == whole


@settings(max_examples=15, deadline=None)
@given(rows=records_given, seed=st.integers(0, 99))
def test_what_leaves_does_not_depend_on_shuffles(rows: list[tuple[str, str, int, int]], seed: int) -> None:
    app = App("all")
    everything(app)
    assert run(app, *batches_of(rows, [5]), seed=seed) == run(app, *batches_of(rows, [5]), seed=seed + 1)


def test_dead_letters_that_pass_stages_have_a_lineage() -> None:
    app = App("letters")
    app.stream("t", value=int).group_by_key().count().to("counts")
    spark: Any = None
    for letters in (None, "dead"):
        context = Context(spark, "letters", spark, 3, given={}, dead_letters=letters)
        assert Execution(app.plan(), context).has_lineage is (letters is not None)
