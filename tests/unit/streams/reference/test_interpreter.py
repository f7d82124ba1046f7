"""In which order records are taken, what sees what, and what is not run."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from ottla.client.record import Record
from ottla.streams import App, StreamsError, TumblingWindow, record
from ottla.streams.errors import FunctionFailed
from ottla.streams.reference.interpreter import Interpreter
from ottla.streams.reference.order import ranked
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import serde


def pairs(records: list[Record]) -> list[tuple[Any, Any]]:
    return [(each.key, each.value) for each in records]


def values(records: list[Record]) -> list[Any]:
    return [each.value for each in records]


def text(topic: str, key: str, value: str | None, timestamp: int, offset: int = 0) -> Record:
    data = None if value is None else value.encode()
    return Record(topic, 0, offset, timestamp, key.encode(), data)


# Order


def test_what_a_record_makes_goes_as_far_as_it_leads_before_the_next_one() -> None:
    app = App("order")
    numbers = app.stream("in", value=int)
    odd, even = numbers.branch(lambda v: v % 2 == 1, lambda v: v % 2 == 0)
    odd.to("out")
    even.flat_map_values(lambda v: [v, v * 10]).to("out")
    assert values(app.test({"in": [1, 9, 2, 8, 3]})["out"]) == [1, 9, 2, 20, 8, 80, 3]


def test_readers_take_their_turns_as_they_were_said() -> None:
    app = App("order")
    lines = app.stream("in")
    seen: list[str] = []
    lines.map_values(str.upper).for_each(seen.append)
    lines.for_each(seen.append)
    app.test({"in": ["a", "b"]})
    assert seen == ["A", "a", "B", "b"]


def test_a_stream_merged_with_itself_is_there_twice() -> None:
    app = App("order")
    lines = app.stream("in")
    lines.merge(lines).to("out")
    assert values(app.test({"in": ["a", "b"]})["out"]) == ["a", "a", "b", "b"]


def test_between_topics_the_earliest_goes_first_and_each_keeps_its_own_order() -> None:
    app = App("order")
    app.stream(["a", "b"]).to("out")
    given = {
        "a": [(None, "a1", 1), (None, "a5", 5), (None, "a2", 2)],
        "b": [(None, "b3", 3), (None, "b5", 5)],
    }
    assert values(app.test(given)["out"]) == ["a1", "b3", "a5", "a2", "b5"]


def test_a_time_that_a_record_says_itself_counts() -> None:
    app = App("order")
    timed = app.stream("a", value=int, timestamp=lambda v: v)
    timed.merge(app.stream("b", value=int)).to("out")
    assert values(app.test({"a": [(None, 30, 1), (None, 10, 2)], "b": [(None, 20, 20)]})["out"]) == [
        20,
        30,
        10,
    ]


def test_at_equal_times_a_tables_change_goes_before_the_record_that_is_joined_with_it() -> None:
    app = App("order")
    stream = app.stream("a-stream")
    stream.join(app.table("table"), lambda value, row: value + row).to("out")
    given = {"a-stream": [("k", "x", 5)], "table": [("k", "1", 5)]}
    assert values(app.test(given)["out"]) == ["x1"]


def test_at_equal_times_the_left_side_goes_before_the_right_one() -> None:
    app = App("order")
    right, left = app.stream("right"), app.stream("left")
    left.left_join(right, lambda one, other: f"{one}{other}", within=5, value=str).to("out")
    assert [each.topics for each in ranked(app.plan())] == [("left",), ("right",)]


def test_wishes_that_contradict_each_other_are_done_as_far_as_they_agree() -> None:
    app = App("order")
    one, other = app.table("one"), app.table("other")
    one.join(other, lambda a, b: a)
    other.join(one, lambda a, b: a)
    app.stream("stream").join(other, lambda a, b: a)
    assert [each.topics for each in ranked(app.plan())] == [("one",), ("other",), ("stream",)]


# What sees what


@dataclass
class Bag:
    things: list[str] = field(default_factory=list)


def test_what_one_function_changes_no_other_sees() -> None:
    def spoil(bag: Bag) -> Bag:
        bag.things.append("spoilt")
        return bag

    app = App("apart")
    bags = app.stream("in", value=Bag)
    bags.map_values(spoil).map_values(spoil).to("twice")
    bags.peek(lambda bag: bag.things.clear()).to("peeked")
    bags.group_by_key().reduce(lambda so_far, bag: spoil(so_far)).to("reduced")
    written = app.test({"in": [("k", Bag(["x"])), ("k", Bag(["y"])), ("k", Bag(["z"]))]})
    assert written["twice"][0].value == Bag(["x", "spoilt", "spoilt"])
    assert values(written["peeked"]) == [Bag(["x"]), Bag(["y"]), Bag(["z"])]
    assert values(written["reduced"])[-1] == Bag(["x", "spoilt", "spoilt"])


def test_numbers_are_as_pythons() -> None:
    app = App("numbers")
    numbers = app.stream("in", value=int)
    numbers.map_values(lambda v: (v * 2654435761) % 4294967296).to("hashed")
    app.stream("floats", value=float).filter(lambda v: v != v).to("nan")
    nan = float("nan")
    written = app.test({"in": [2**62, -(2**63)], "floats": [1.0, nan]})
    assert values(written["hashed"]) == [(v * 2654435761) % 4294967296 for v in (2**62, -(2**63))]
    assert len(written["nan"]) == 1


@dataclass
class Flags:
    is_new: bool
    is_large: bool


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
def test_inverted_bits_are_no_predicate() -> None:
    """In Python ~True is -2."""
    app = App("not")
    app.stream("in", value=Flags).filter(lambda v: ~v.is_new).to("old")
    with pytest.raises(FunctionFailed, match="returned -2, which is neither True nor False"):
        app.test({"in": [Flags(True, True)]})


def test_a_global_table_is_there_in_full_before_the_first_record() -> None:
    app = App("global")
    prices = app.global_table("prices", value=int)
    app.stream("sales").left_join(prices, lambda sale, price: f"{sale} {price}", value=str).to("out")
    given = {"sales": [("a", "x", 1), ("b", "y", 2), (None, "z", 3)], "prices": [("a", 1, 9), ("a", 2, 10)]}
    assert values(app.test(given)["out"]) == ["x 2", "y None", "z None"]


def test_what_leads_to_no_end_is_not_run() -> None:
    def never(value: str) -> str:
        raise AssertionError

    app = App("ends")
    lines = app.stream("in")
    lines.map_values(never)
    lines.to("out")
    assert values(app.test({"in": ["a"]})["out"]) == ["a"]


# Records one by one


def test_records_may_be_fed_one_by_one() -> None:
    app = App("fed")
    app.stream("in").group_by_key().count().to("out")
    running = Interpreter(app.plan(), updates="all", dead_letters=None, app="fed")
    assert running.feed(text("elsewhere", "k", "x", 1)) == []
    (one,) = running.feed(text("in", "k", "x", 7, 3))
    assert one.raw == Record("out", -1, -1, 7, b"k", (1).to_bytes(8, "big"))
    assert one.record == Record("out", -1, -1, 7, "k", 1)
    assert one.node.name == "to-1"
    (two,) = running.feed(text("in", "k", "y", 8, 4))
    assert two.record.value == 2


@pytest.mark.parametrize("batches", [1, 2, 3, 7])
def test_micro_batches_change_nothing(batches: int) -> None:
    app = App("batches")
    lines = app.stream("in")
    lines.group_by_key().windowed_by(TumblingWindow(10, grace=5)).count().to("windows")
    lines.left_join(app.stream("other"), lambda one, other: f"{one}{other}", within=3, value=str).to("joined")
    given = {
        "in": [("a", "x", 1), ("b", "y", 12), ("a", "z", 19), ("a", "u", 31)],
        "other": [("a", "1", 2), ("b", "2", 13), ("b", "3", 14), ("a", "4", 30)],
    }
    assert app.test(given, batches=batches) == app.test(given)


def test_what_is_written_to_a_topic_that_is_read_is_read_with_its_bytes() -> None:
    app = App("loop")
    app.stream("in", value=int).to("back", value=serde(int, "json"))
    app.stream("back").to("out")
    assert values(app.test({"in": [5, 17]})["out"]) == ["5", "17"]


def test_a_topology_that_never_comes_to_an_end_is_told() -> None:
    app = App("loop")
    app.stream("in").to("in")
    with pytest.raises(StreamsError, match="after 100 rounds"):
        app.test({"in": ["x"]})


def test_headers_and_partitions_go_along() -> None:
    app = App("tail")
    lines = app.stream("in")
    lines.map_values(str.upper).to("out", partitioner=len)
    lines.group_by_key().count().to("count")
    given = [record("abc", "k", 5, [("h", b"1"), ("none", None)])]
    written = app.test({"in": given})
    assert written["out"] == [Record("out", 3, 0, 5, "k", "ABC", (("h", b"1"), ("none", None)))]
    assert written["count"][0].headers == (("h", b"1"), ("none", None))


def test_two_zeros_are_two_keys_and_what_is_no_number_is_one() -> None:
    app = App("keys")
    app.stream("in", key=float).group_by_key().count().to("out")
    nan = float("nan")
    written = app.test({"in": [(0.0, "x"), (-0.0, "x"), (nan, "x"), (nan, "x"), (1.0, "x")]})
    assert values(written["out"]) == [1, 1, 1, 2, 1]


def test_long_decimals_are_keys_apart() -> None:
    app = App("keys")
    app.stream("in", key=Decimal).group_by_key().count().to("out")
    long = "1234567890123456789.01234567890123456"
    keys = [Decimal(f"{long}7"), Decimal(f"{long}8"), Decimal("1.50"), Decimal("1.5")]
    assert values(app.test({"in": [(each, "x") for each in keys]})["out"]) == [1, 1, 1, 2]


def test_bytes_may_be_given_as_they_are() -> None:
    """Bytes are taken as they are, so what cannot be read can be given."""
    app = App("bytes")
    app.stream("in", value=int).to("out")
    assert values(app.test({"in": [encoder(serde(int))(5), 6]})["out"]) == [5, 6]
