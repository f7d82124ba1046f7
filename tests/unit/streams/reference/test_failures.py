"""What cannot be read, what raises and what returns the wrong thing: operator, line and record are named."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams import App, StreamsError, TimeLimit, TopologyError, record
from ottla.streams.errors import FunctionFailed, Unreadable


@dataclass
class Order:
    user: str
    total: int


def boom(value: Order) -> int:
    return 1 // (value.total - 7)


def failure(app: App, given: dict[str, list[Any]]) -> str:
    with pytest.raises(FunctionFailed) as caught:
        app.test(given)
    return str(caught.value)


def test_a_function_that_raises_is_named_with_its_line_and_the_record() -> None:
    app = App("boom")
    app.stream("orders", value=Order).group_by_key().reduce(lambda one, other: other).to_stream().map_values(
        boom, name="burst"
    ).to("out")
    said = failure(app, {"orders": [("k", Order("x", 8)), ("k", Order("x", 7))]})
    line = boom.__code__.co_firstlineno + 1
    assert said.startswith(
        "burst: ZeroDivisionError: integer division or modulo by zero, on the record orders-0@1\n"
    )
    assert f'test_failures.py", line {line}, in boom' in said


def test_a_null_meets_the_function_as_none() -> None:
    app = App("nulls")
    app.stream("orders", value=Order).filter(lambda v: v.total > 1, name="big").to("out")
    said = failure(app, {"orders": [("k", None)]})
    assert "big: AttributeError: 'NoneType' object has no attribute 'total', on the record orders-0@0" in said


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a text for a number": (
        lambda stream: stream.map_values(lambda v: str(v and "text"), value=int),
        "returned the wrong thing: 'text' is a str, not an int",
    ),
    "a number that is too large": (
        lambda stream: stream.map_values(lambda v: v.total << 70, value=int),
        "does not fit into 64 bits",
    ),
    "a predicate": (
        lambda stream: stream.filter(lambda v: v.user or v),
        "a predicate returned 'ann', which is neither True nor False",
    ),
    "no pair": (
        lambda stream: stream.map(lambda k, v: [k, v, v], key=str, value=Order),
        "which is not a pair of key and value",
    ),
    "nothing to go through": (
        lambda stream: stream.flat_map_values(lambda v: None, value=str),
        "TypeError: 'NoneType' object is not iterable",
    ),
    "a generator that raises": (
        lambda stream: stream.flat_map_values(lambda v: (1 // 0 for _ in "x"), value=int),
        "ZeroDivisionError",
    ),
    "an aggregate": (
        lambda stream: stream.group_by_key().aggregate(lambda: 0, lambda v, n: "x"),
        "returned the wrong thing: 'x' is a str, not an int",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    build, said = WRONG[name]
    app = App("wrong")
    last = build(app.stream("orders", value=Order))
    last.to("out")
    found = failure(app, {"orders": [("k", Order("ann", 5))]})
    assert said in found and "on the record orders-0@0" in found


def test_a_topic_has_a_name() -> None:
    app = App("wrong")
    app.stream("in").to(lambda v: v.strip("x"))
    assert "to-1: '' is no name of a topic, on the record in-0@1" in failure(app, {"in": ["xy", "xx"]})


@pytest.mark.parametrize(
    "time", [None, -1, True, 1.5, "now", datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC)]
)
def test_a_time_is_one(time: Any) -> None:
    app = App("times")
    times = iter([5, time])
    app.stream("in", timestamp=lambda v: (lambda: next(times))(), name="timed").to("out")
    said = failure(app, {"in": ["a", "b"]})
    assert "timed: " in said and "is no timestamp: give milliseconds from 0 to" in said
    assert "on the record in-0@1" in said


def test_a_datetime_is_a_time_to_the_millisecond() -> None:
    app = App("times")
    at = datetime.datetime(2033, 5, 18, 3, 33, 20, 7_999, tzinfo=datetime.UTC)
    app.stream("in", timestamp=lambda v: (lambda: at)(), name="timed").to("out")
    assert app.test({"in": ["a"]})["out"][0].timestamp == 2_000_000_000_007


def test_a_datetime_without_a_time_zone_says_no_moment() -> None:
    at = datetime.datetime(2033, 5, 18, 3, 33, 20)
    app = App("times")
    app.stream("in", timestamp=lambda v: (lambda: at)(), name="timed").to("out")
    assert "datetime.datetime(2033, 5, 18, 3, 33, 20) has no time zone" in failure(app, {"in": ["a"]})
    app = App("values")
    app.stream("in").map_values(lambda v: (lambda: at)(), value=datetime.datetime).to("out")
    assert "has no time zone" in failure(app, {"in": ["a"]})


BAD = [
    (b"ok", b'{"user":"a","total":1}'),
    (b"\xff", b'{"user":"a","total":1}'),
    (b"k", b"{"),
    (b"k", b'{"user":"a"}'),
    (b"k", None),
    (b"k", b"[1]"),
]


def test_dead_letters() -> None:
    app = App("letters", dead_letters="dead")
    app.stream("orders", value=Order).to("copy")
    given = [record(value, key, 5, [("h", b"1")]) for key, value in BAD]
    written = app.test({"orders": given})
    assert [(each.key, each.value) for each in written["copy"]] == [("ok", Order("a", 1)), ("k", None)]
    dead = written["dead"]
    assert [(each.key, each.value, each.timestamp) for each in dead] == [
        (*each, 5) for each in (*BAD[1:4], BAD[5])
    ]
    told = [dict(each.headers) for each in dead]
    assert all(each["h"] == b"1" and each["__streams.errors.topic"] == b"orders" for each in told)
    assert [each["__streams.errors.offset"] for each in told] == [b"1", b"2", b"3", b"5"]
    assert [each["__streams.errors.partition"] for each in told] == [b"0"] * 4
    assert told[0]["__streams.errors.exception"] == b"ottla.streams.errors.Unreadable"
    assert told[0]["__streams.errors.stacktrace"] == b""
    messages = [(each["__streams.errors.message"] or b"").decode() for each in told]
    assert messages[0].startswith("key: its 1 bytes are no string")
    assert messages[2:] == ["value: total is missing", "value: it is not an object"]


def test_without_a_place_for_dead_letters_the_record_is_named() -> None:
    app = App("no-letters")
    app.stream("orders", value=Order).to("copy")
    with pytest.raises(
        Unreadable, match="stream-1: the record orders-0@1 cannot be read: value: total is missing"
    ):
        app.test({"orders": [("k", Order("a", 1)), ("k", b'{"user":"a"}')]})


def test_a_row_of_a_global_table_that_cannot_be_read_fails_when_it_is_looked_up() -> None:
    app = App("global")
    users = app.global_table("users", value=int)
    app.stream("in").join(users, lambda value, row: value).to("out")
    given = {"users": [("a", b"?"), ("b", 5)], "in": [("b", "x")]}
    assert len(app.test(given)["out"]) == 1
    with pytest.raises(StreamsError, match="the row 'a' of users cannot be read"):
        app.test({**given, "in": [("a", "x")]})


def test_too_much_is_held_back() -> None:
    app = App("held")
    held = app.stream("in").group_by_key().count()
    held.suppress(TimeLimit(10, records_max=1, when_full="fail"), name="held").to("out")
    with pytest.raises(StreamsError, match="held: more than 1 keys are held back"):
        app.test({"in": [("a", "x", 1), ("b", "x", 2)]})


def test_what_spark_cannot_count_by_itself_is_refused_here_too() -> None:
    app = App("native", updates="last", native=True)
    app.stream("in").distinct().group_by_key().count().to("out")
    with pytest.raises(TopologyError, match="native: distinct-1 is another operator that remembers"):
        app.test({"in": ["a"]})
