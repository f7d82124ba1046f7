"""Stateless operators: what Kafka Streams' documentation says of each, written down and run.

Every operator is there twice: with a function that Spark computes, and with one that Python is called for.
"""

import datetime
import enum
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ottla.client.record import Record
from ottla.streams import App, TopologyError, TypeMismatch, record, serde
from ottla.streams.plan.sinks import To
from ottla.streams.plan.sources import StreamSource
from ottla.streams.types.codec import decoder, encoder


@dataclass
class Order:
    user: str
    total: int
    words: list[str] = field(default_factory=list)


def python(given: Any) -> Any:
    """The same value; a call that no expression has."""
    return given


def spelled(key: str, value: Order) -> Iterator[tuple[str, int]]:
    for word in value.words:
        yield f"{key}-{word}", value.total


def boom(value: Order) -> int:
    return 1 // (value.total - 7)


ORDERS = [
    ("k1", Order("ann", 5, ["a", "b"]), 100),
    ("k2", Order("bob", 15), 90),
    ("k1", Order("ann", 25, ["c"]), 80),
    ("k3", Order("cid", 10, ["d", "e", "f"]), 110),
]


def topology() -> App:
    app = App("stateless")
    orders = app.stream("orders", value=Order)
    orders.filter(lambda v: v.total > 10).to("filter")
    orders.filter(lambda v: python(v.total) > 10).to("filter-py")
    orders.filter_not(lambda k, v: (k == "k1") | (v.total > 10)).to("filter_not")
    orders.filter_not(lambda k, v: k == "k1" or v.total > 10).to("filter_not-py")
    orders.map(lambda k, v: (v.user, v.total * 2)).to("map")
    orders.map(lambda k, v: (python(v.user), v.total * 2), key=str, value=int).to("map-py")
    orders.map_values(lambda v: v.user.upper()).to("map_values")
    orders.map_values(lambda k, v: f"{k}:{v.user}", value=str).to("map_values-py")
    orders.flat_map(lambda k, v: [(v.user, v.total), (k, 0)]).to("flat_map")
    orders.flat_map(spelled).to("flat_map-py")
    orders.flat_map_values(lambda v: v.words).to("flat_map_values")
    orders.flat_map_values(lambda v: [word * 2 for word in v.words], value=str).to("flat_map_values-py")
    orders.select_key(lambda k, v: v.user).to("select_key")
    orders.select_key(lambda v: len(python(v.user)), key=int).to("select_key-py")
    for name, way in zip(
        ("one", "two"), orders.branch(lambda v: v.total > 20, lambda v: v.total > 5), strict=True
    ):
        way.to(f"branch-{name}")
    ways = orders.split(
        {"big": lambda v: python(v.total) > 20, "middle": lambda v: v.total > 5}, default="small"
    )
    for name, way in ways.items():
        way.to(f"split-{name}")
    orders.filter(lambda v: v.total < 10).merge(orders.filter(lambda v: v.total > 20)).to("merge")
    orders.peek(lambda k, v: python(v)).peek(print).to("peek")
    orders.repartition(3).map_values(lambda v: v.total).to("repartition")
    orders.to(lambda k, v: "to-" + v.user)
    orders.to(lambda k, v: f"to-py-{v.user}", partitioner=lambda v: v.total % 3)
    # Three functions in a row that Python is called for are one pass, and each gets what the one before it returned.
    chained = orders.map_values(lambda v: python(v.total), value=float)
    chained = chained.flat_map_values(lambda v: [v, python(-v)], value=float)
    chained.filter(lambda v: isinstance(v, float) and v > 0).map_values(lambda v: v / 2).to("chain")
    return app


@pytest.fixture(scope="module")
def written(spark: Any) -> dict[str, list[Record]]:
    return topology().test({"orders": ORDERS})


def pairs(records: list[Record]) -> list[tuple[Any, Any]]:
    return [(each.key, each.value) for each in records]


A, B, C, D = (order for _, order, _ in ORDERS)

EXPECTED: dict[str, list[tuple[Any, Any]]] = {
    "filter": [("k2", B), ("k1", C)],
    "filter_not": [("k3", D)],
    "map": [("ann", 10), ("bob", 30), ("ann", 50), ("cid", 20)],
    "map_values": [("k1", "ANN"), ("k2", "BOB"), ("k1", "ANN"), ("k3", "CID")],
    "map_values-py": [("k1", "k1:ann"), ("k2", "k2:bob"), ("k1", "k1:ann"), ("k3", "k3:cid")],
    "flat_map": [
        ("ann", 5), ("k1", 0), ("bob", 15), ("k2", 0), ("ann", 25), ("k1", 0), ("cid", 10), ("k3", 0),
    ],
    "flat_map-py": [("k1-a", 5), ("k1-b", 5), ("k1-c", 25), ("k3-d", 10), ("k3-e", 10), ("k3-f", 10)],
    "flat_map_values": [("k1", "a"), ("k1", "b"), ("k1", "c"), ("k3", "d"), ("k3", "e"), ("k3", "f")],
    "flat_map_values-py": [
        ("k1", "aa"), ("k1", "bb"), ("k1", "cc"), ("k3", "dd"), ("k3", "ee"), ("k3", "ff"),
    ],
    "select_key": [("ann", A), ("bob", B), ("ann", C), ("cid", D)],
    "select_key-py": [(3, A), (3, B), (3, C), (3, D)],
    "branch-one": [("k1", C)],
    "branch-two": [("k2", B), ("k3", D)],
    "split-big": [("k1", C)],
    "split-middle": [("k2", B), ("k3", D)],
    "split-small": [("k1", A)],
    "merge": [("k1", A), ("k1", C)],
    "peek": [("k1", A), ("k2", B), ("k1", C), ("k3", D)],
    "to-ann": [("k1", A), ("k1", C)],
    "to-bob": [("k2", B)],
    "to-cid": [("k3", D)],
    "to-py-ann": [("k1", A), ("k1", C)],
    "to-py-bob": [("k2", B)],
    "to-py-cid": [("k3", D)],
    "chain": [("k1", 2.5), ("k2", 7.5), ("k1", 12.5), ("k3", 5.0)],
}  # fmt: skip
for twin in ("filter", "filter_not", "map"):
    EXPECTED[f"{twin}-py"] = EXPECTED[twin]


@pytest.mark.parametrize("topic", EXPECTED)
def test_what_an_operator_gives(written: dict[str, list[Record]], topic: str) -> None:
    assert pairs(written[topic]) == EXPECTED[topic]


def test_nothing_else_is_written(written: dict[str, list[Record]]) -> None:
    assert written.keys() == EXPECTED.keys() | {"repartition"}


def test_repartition_keeps_the_order_within_a_key(written: dict[str, list[Record]]) -> None:
    found = pairs(written["repartition"])
    assert sorted(found) == [("k1", 5), ("k1", 25), ("k2", 15), ("k3", 10)]
    assert [value for key, value in found if key == "k1"] == [5, 25]


def test_partitions_are_as_told(written: dict[str, list[Record]]) -> None:
    assert [each.partition for each in written["to-py-ann"]] == [2, 1]


def test_timestamps_stay_with_their_records(written: dict[str, list[Record]]) -> None:
    assert [each.timestamp for each in written["map"]] == [100, 90, 80, 110]
    assert [each.timestamp for each in written["flat_map-py"]] == [100, 100, 80, 110, 110, 110]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Inner:
    name: str
    n: int = 3


@dataclass
class Everything:
    i: int
    f: float
    s: str
    b: bool
    raw: bytes
    price: Decimal
    at: datetime.datetime
    day: datetime.date
    colour: Colour
    inner: Inner
    inners: list[Inner]
    by_name: dict[str, Inner]
    maybe: str | None = None
    text: str = "default"
    numbers: list[int] = field(default_factory=lambda: [1, 2])


EVERYTHING = Everything(
    i=-(2**63),
    f=1e-300,
    s='Żółw "quoted" \\ \n',
    b=True,
    raw=b"\x00\xff",
    price=Decimal("12345678901234567890.123456789012345678"),
    at=datetime.datetime(1969, 12, 31, 23, 59, 59, 123456, tzinfo=datetime.UTC),
    day=datetime.date(2024, 2, 29),
    colour=Colour.BLUE,
    inner=Inner("x", 1),
    inners=[Inner("y"), Inner("z", -1)],
    by_name={"k": Inner("w")},
    maybe="here",
    numbers=[],
)
LEAST = {
    "i": 1, "f": 2, "s": "", "b": False, "raw": "", "price": 0.5, "at": "2024-01-01T00:00:00+02:00",
    "day": "2024-01-01", "colour": "red", "inner": {"name": "n"}, "inners": [{"name": "m"}],
    "by_name": {"q": {"name": "p"}},
}  # fmt: skip
FULL = Everything(
    i=1, f=2.0, s="", b=False, raw=b"", price=Decimal("0.5"), day=datetime.date(2024, 1, 1), colour=Colour.RED,
    at=datetime.datetime(2023, 12, 31, 22, tzinfo=datetime.UTC), inner=Inner("n"), inners=[Inner("m")],
    by_name={"q": Inner("p")},
)  # fmt: skip

SERDES: dict[str, tuple[Any, list[Any]]] = {
    "string": (str, ["", "Żółw", None]),
    "bytes": (bytes, [b"", b"\xff", None]),
    "long": (int, [0, -1, 2**63 - 1, -(2**63), None]),
    "integer": ("int", [0, -1, 2**31 - 1, -(2**31)]),
    "short": ("smallint", [0, -1, 2**15 - 1, -(2**15)]),
    "double": (float, [0.0, -1.5, 1e300, None]),
    "boolean": (bool, [True, False, None]),
    "json-int": (serde(int, "json"), [5, -5, None]),
    "json-text": (serde(str, "json"), ["a", 'say "hi"', None]),
    "list": (list[int], [[], [1, 2], None]),
    "dict": (dict[str, list[float]], [{}, {"a": [1.5]}, None]),
    "any": (Any, [{"b": [1, None, {"x": "y"}]}, [], "text", 5, None]),
    "enum": (Colour, [Colour.RED, None]),
    "dataclass": (Everything, [EVERYTHING, None]),
    "ddl": (
        "name string, tags array<string>",
        [{"name": "a", "tags": ["x"]}, {"name": None, "tags": None}, None],
    ),
    "pair": (tuple[str, int], [("a", 1), None]),
}


@pytest.mark.parametrize("name", SERDES)
def test_what_is_read_and_written_is_the_same(spark: Any, name: str) -> None:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.lower import Lowered
    from ottla.streams.lowering.writing import outgoing

    kind, values = SERDES[name]
    app = App("serdes")
    app.stream("in", value=kind).to("out")
    source, sink = app.plan().nodes
    assert isinstance(source, StreamSource) and isinstance(sink, To)
    encode, decode = encoder(source.value_serde), decoder(sink.value_serde)
    given = [None if each is None else encode(each) for each in values]
    if name == "dataclass":
        given, values = [*given, json.dumps(LEAST).encode()], [*values, FULL]
    columns = "value binary, key binary, timestamp timestamp, headers array<struct<key:string,value:binary>>"
    columns += ", topic string, partition int, offset bigint"
    now = datetime.datetime.now()
    frame = spark.createDataFrame(
        [(each, None, now, None, "in", 0, n) for n, each in enumerate(given)], columns
    )
    context = Context(spark=spark, app="serdes", read=lambda source: frame.coalesce(1), partitions=1)
    rows = outgoing(sink, Lowered(context).frame(source)).collect()
    assert [None if row.value is None else decode(bytes(row.value)) for row in rows] == values


BAD = [
    (b"ok", b'{"user":"a","total":1,"words":[]}'),
    (b"\xff", b'{"user":"a","total":1}'),
    (b"k", b"{"),
    (b"k", b'{"user":"a"}'),
    (b"k", b'{"user":"a","total":"5"}'),
    (b"k", b'{"user":"a","total":1,"words":[null]}'),
    (b"k", b"[1]"),
    (b"k", None),
    (b"k", b"null"),
]


def test_dead_letters(spark: Any) -> None:
    app = App("letters", dead_letters="dead")
    app.stream("orders", value=Order).to("copy")
    given = [record(value, key, 5, [("h", b"1")]) for key, value in BAD]
    written = app.test({"orders": given})
    assert pairs(written["copy"]) == [("ok", Order("a", 1)), ("k", None), ("k", None)]
    dead = written["dead"]
    assert [(each.key, each.value, each.timestamp) for each in dead] == [(*each, 5) for each in BAD[1:7]]
    told = [dict(each.headers) for each in dead]
    assert all(each["h"] == b"1" and each["__streams.errors.topic"] == b"orders" for each in told)
    assert [each["__streams.errors.offset"] for each in told] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert [each["__streams.errors.message"].decode() for each in told] == [
        "key: its bytes are not UTF-8",
        "value: it is not JSON of the type that is wanted",
        "value: total is missing",
        "value: it is not JSON of the type that is wanted",
        "value: words[] is missing",
        "value: it is not JSON of the type that is wanted",
    ]


@dataclass
class Loose:
    anything: Any


def test_dead_letters_of_what_keeps_state(spark: Any) -> None:
    app = App("letters", dead_letters="dead")
    orders = app.stream("orders", value=Order)
    orders.group_by_key().count().to("count")
    app.table("users", value=int).to("users-copy")
    written = app.test(
        {"orders": [ORDERS[0], ("k", b"{"), ORDERS[2]], "users": [("a", 1), ("b", b"?")]}, batches=2
    )
    assert pairs(written["count"]) == [("k1", 1), ("k1", 2)]
    assert pairs(written["users-copy"]) == [("a", 1)]
    assert sorted(pairs(written["dead"])) == [(b"b", b"?"), (b"k", b"{")]


def test_dead_letters_that_python_finds(spark: Any) -> None:
    app = App("letters", dead_letters="dead")
    app.stream("in", value=Loose).map_values(lambda v: v.anything["a"], value=int).to("out")
    written = app.test({"in": [b'{"anything":{"a":1}}', b"{}}", b"[]"]})
    assert pairs(written["out"]) == [(None, 1)]
    assert [dict(each.headers)["__streams.errors.message"].split(b":")[1] for each in written["dead"]] == [
        b" it is not JSON",
        b" it is not an object",
    ]


def failure(app: App, given: dict[str, list[Any]]) -> str:
    from ottla.spark import SparkFailure

    with pytest.raises(SparkFailure) as caught:
        app.test(given)
    return str(caught.value)


def test_without_a_place_for_dead_letters_the_record_is_named(spark: Any) -> None:
    app = App("no-letters")
    app.stream("orders", value=Order).to("copy")
    said = failure(app, {"orders": [ORDERS[0], ("k", b'{"user":"a"}')]})
    assert "stream-1: the record orders-0@1 cannot be read: value: total is missing" in said


def test_a_function_that_raises_is_named_with_its_line_and_the_record(spark: Any) -> None:
    app = App("boom")
    app.stream("orders", value=Order).map_values(lambda v: v).map_values(boom, name="burst").to("out")
    said = failure(app, {"orders": [ORDERS[0], ("k", Order("x", 7))]})
    line = boom.__code__.co_firstlineno
    assert said.startswith(
        "burst: ZeroDivisionError: integer division or modulo by zero, on the record orders-0@1\n"
    )
    assert f'test_streams_stateless.py", line {line + 1}, in boom' in said


def test_a_null_that_a_function_does_not_expect_is_named(spark: Any) -> None:
    app = App("nulls")
    app.stream("orders", value=Order).filter(lambda v: v.total > 1, name="big").to("out")
    said = failure(app, {"orders": [("k", None)]})
    assert "big: the value of the record orders-0@0 is null" in said and "test_streams_stateless.py" in said


def test_nulls_that_a_function_expects(spark: Any) -> None:
    app = App("nulls")
    orders = app.stream("orders", value=Order)
    orders.filter(lambda v: v != None).to("there")  # noqa: E711
    orders.filter(lambda v: v is None).to("gone")
    orders.map_values(lambda v: None if v is None else v.user, value=str).to("user")
    written = app.test({"orders": [("k", None), ORDERS[0]]})
    assert pairs(written["there"]) == [("k1", A)]
    assert pairs(written["gone"]) == [("k", None)]
    assert pairs(written["user"]) == [("k", None), ("k1", "ann")]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda v: python("text"), "returned the wrong thing: 'text' is a str, not an int"),
        (lambda v: python(1 << 70), "does not fit into 64 bits"),
    ],
)
def test_a_function_that_returns_something_else_is_named(spark: Any, function: Any, why: str) -> None:
    app = App("wrong")
    app.stream("orders", value=Order).map_values(function, value=int, name="odd").to("out")
    said = failure(app, {"orders": ORDERS[:1]})
    assert f"odd: {why}" in said or (why in said and "odd: " in said)


def test_a_predicate_is_true_or_false(spark: Any) -> None:
    app = App("wrong")
    app.stream("orders", value=Order).filter(lambda v: python(v.user)).to("out")
    said = failure(app, {"orders": ORDERS[:1]})
    assert "a predicate returned 'ann', which is neither True nor False" in said


def test_micro_batches_change_nothing(spark: Any) -> None:
    app = App("batches")
    app.stream("orders", value=Order).map(lambda k, v: (v.user, v.total)).to("out")
    whole = app.test({"orders": ORDERS})
    assert app.test({"orders": ORDERS}, batches=3) == whole


def test_what_is_written_to_a_topic_that_is_read_is_read(spark: Any) -> None:
    app = App("loop")
    numbers = app.stream("numbers", value=int)
    numbers.filter(lambda v: v > 0).map_values(lambda v: v - 1).to("numbers")
    numbers.map_values(lambda v: v * 10).to("out")
    written = app.test({"numbers": [2]})
    assert [each.value for each in written["out"]] == [20, 10, 0]
    assert [each.value for each in written["numbers"]] == [1, 0]


def test_without_a_sink_what_nobody_reads_is_returned(spark: Any) -> None:
    app = App("loose")
    app.stream("orders", value=Order).map_values(lambda v: v.total, name="totals")
    assert pairs(app.test({"orders": ORDERS})["totals"]) == [("k1", 5), ("k2", 15), ("k1", 25), ("k3", 10)]


def test_peek_is_called_with_every_record(spark: Any, tmp_path: Path) -> None:
    """Wherever the record passes, which is in another process; and the record goes on as it was."""
    seen = tmp_path / "seen"

    def look(key: str, value: Order) -> None:
        with seen.open("a") as file:
            file.write(f"{key} {value.total}\n")

    app = App("peek")
    app.stream("orders", value=Order).peek(look).to("out")
    assert pairs(app.test({"orders": ORDERS})["out"]) == [("k1", A), ("k2", B), ("k1", C), ("k3", D)]
    assert seen.read_text().splitlines() == ["k1 5", "k2 15", "k1 25", "k3 10"]


def test_for_each_and_print(spark: Any) -> None:
    seen: list[Any] = []
    app = App("ends")
    orders = app.stream("orders", value=Order)
    orders.for_each(lambda k, v: seen.append((k, v.total)), name="each")
    orders.map_values(lambda v: v.total).print("totals", name="shown")
    written = app.test({"orders": ORDERS[:2]})
    assert seen == [("k1", 5), ("k2", 15)]
    assert pairs(written["shown"]) == [("k1", 5), ("k2", 15)]


@dataclass
class Event:
    name: str
    at: datetime.datetime
    ms: int


def test_a_record_may_say_its_time(spark: Any) -> None:
    app = App("times")
    app.stream("events", value=Event, timestamp=lambda v: v.at, name="a").map_values(lambda v: v.name).to("a")
    app.stream("events", value=Event, timestamp=lambda v: v.ms + 1, name="b").map_values(lambda v: v.name).to(
        "b"
    )
    app.stream("events", value=Event, timestamp=lambda v: python(v.at), name="c").map_values(
        lambda v: v.name
    ).to("c")
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    written = app.test({"events": [Event("x", at, 41)]})
    assert [written[name][0].timestamp for name in "abc"] == [1704067200000, 42, 1704067200000]


def test_several_topics_and_patterns(spark: Any) -> None:
    app = App("many")
    app.stream(["a", "b"]).to("both")
    app.stream(pattern="x-.*").to("pattern")
    written = app.test({"a": ["1"], "b": ["2"], "x-1": ["3"], "x-2": ["4"]})
    assert [each.value for each in written["both"]] == ["1", "2"]
    assert [each.value for each in written["pattern"]] == ["3", "4"]
    with pytest.raises(TopologyError, match="nothing reads the topic 'y'"):
        app.test({"y": []})
    with pytest.raises(TypeMismatch, match="the value of a record for a: 5 is a int, not a str"):
        app.test({"a": [5]})


def test_tables(spark: Any) -> None:
    """A row that no longer holds becomes a tombstone, one that never did is no change, functions see no tombstones."""
    app = App("tables")
    users = app.table("users", value=Order)
    users.filter(lambda v: v.total > 10).to("filter")
    users.filter_not(lambda v: python(v.total) <= 10).to("filter-py")
    users.map_values(lambda k, v: k + v.user).to("map_values")
    users.map_values(lambda v: python(v.total), value=int).to("map_values-py")
    users.to_stream(lambda k, v: k + "!").to("to_stream")
    users.group_by(lambda k, v: (v.user, v.total)).count().to("count")
    given = [
        ("a", Order("x", 5)),
        ("a", Order("x", 15)),
        ("b", Order("y", 20)),
        (None, Order("nobody", 99)),
        ("a", Order("y", 7)),
        ("b", None),
        ("c", None),
    ]
    written = app.test({"users": given})
    held = [("a", Order("x", 15)), ("b", Order("y", 20)), ("a", None), ("b", None)]
    assert pairs(written["filter"]) == held
    assert pairs(written["filter-py"]) == held
    assert pairs(written["map_values"]) == [
        ("a", "ax"), ("a", "ax"), ("b", "by"), ("a", "ay"), ("b", None), ("c", None),
    ]  # fmt: skip
    assert [value for _, value in pairs(written["map_values-py"])] == [5, 15, 20, 7, None, None]
    assert [key for key, _ in pairs(written["to_stream"])] == ["a!", "a!", "b!", "a!", "b!", "c!"]
    # (x, 1), the same group again, (y, 1), from x to y, out of y.
    assert pairs(written["count"]) == [("x", 1), ("x", 1), ("y", 1), ("x", 0), ("y", 2), ("y", 1)]


def test_a_function_of_this_program_that_raises_is_named(spark: Any) -> None:
    app = App("boom")
    app.stream("orders", value=Order).for_each(boom, name="burst")
    said = failure(app, {"orders": [("k", Order("x", 7))]})
    assert said.startswith("burst: ZeroDivisionError")
    assert f'test_streams_stateless.py", line {boom.__code__.co_firstlineno + 1}, in boom' in said


@dataclass
class Odd:
    n: int
    flag: bool | None = None
    at: datetime.datetime | None = None
    note: str | None = None
    five: int | None = 5


@dataclass
class Held:
    key: str
    n: int


MOST = 2**63 - 1
NEITHER = "a predicate returned None, which is neither True nor False"
UNFIT = "9223372036854775808 does not fit into 64 bits"
WHEN = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC)

# What is said of the stream twice, once for Spark and once for Python, a record, and why it fails, in whose words where
# they differ.
FAILS: dict[str, tuple[Any, Any, Odd | None, str | tuple[str, str]]] = {
    "filter_not": (
        lambda s: s.filter_not(lambda v: v.flag, name="it"),
        lambda s: s.filter_not(lambda v: python(v.flag), name="it"),
        Odd(1),
        NEITHER,
    ),
    "branch": (
        lambda s: s.branch(lambda v: v.n > 1, lambda v: v.flag, name="it")[1],
        lambda s: s.branch(lambda v: v.n > 1, lambda v: python(v.flag), name="it")[1],
        Odd(1),
        NEITHER,
    ),
    "table": (
        lambda s: s.to_table().filter_not(lambda v: v.flag, name="it").to_stream(),
        lambda s: s.to_table().filter_not(lambda v: python(v.flag), name="it").to_stream(),
        Odd(1),
        NEITHER,
    ),
    "sum": (
        lambda s: s.map_values(lambda v: v.n + 1, name="it"),
        lambda s: s.map_values(lambda v: python(v.n) + 1, value=int, name="it"),
        Odd(MOST),
        f"returned the wrong thing: {UNFIT}",
    ),
    "field": (
        lambda s: s.map_values(lambda v: Held("k", v.n + 1), name="it"),
        lambda s: s.map_values(lambda v: Held("k", python(v.n) + 1), value=Held, name="it"),
        Odd(MOST),
        f"returned the wrong thing: field n: {UNFIT}",
    ),
    "null": (
        lambda s: s.map_values(lambda k, v: Held(k, v.n), name="it"),
        lambda s: s.map_values(lambda k, v: Held(python(k), v.n), value=Held, name="it"),
        None,
        (
            "the key of the record odd-0@0 is null, which the function at",
            "returned the wrong thing: field key: None is None, not a str",
        ),
    ),
    "topic": (
        lambda s: s.to(lambda v: v.note, name="it"),
        lambda s: s.to(lambda v: python(v.note), name="it"),
        Odd(1),
        "None is no name of a topic",
    ),
    "partition": (
        lambda s: s.to("out", partitioner=lambda v: v.n, name="it"),
        lambda s: s.to("out", partitioner=lambda v: python(v.n), name="it"),
        Odd(-1),
        "-1 is no number of a partition",
    ),
    "short": (
        lambda s: s.map_values(lambda v: v.n).to("out", value=serde(int, "short"), name="it"),
        lambda s: s.map_values(lambda v: v.n).to(lambda v: f"out-{v}", value=serde(int, "short"), name="it"),
        Odd(70_000),
        "70000 cannot be written as short",
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_failure_has_the_same_words_whoever_computes_it(spark: Any, name: str) -> None:
    *both, value, why = FAILS[name]
    key = None if name == "null" else "k"
    said = []
    for say in both:
        app = App("fails")
        stream = say(app.stream("odd", value=Odd))
        if stream is not None:
            stream.to("out")
        said.append(failure(app, {"odd": [record(value or Odd(1), key)]}))
    # A way of a branch has a number, and what comes out of a table is in a queue of the table's.
    # Spark sees before it computes what Python sees when it is done, and what the reference runs Python calls.
    traced, called = why if isinstance(why, tuple) else (why, why)
    assert all(each.startswith(("it: ", "it-2: ")) and "-0@0" in each for each in said), said
    assert (called if spark is None else traced) in said[0] and called in said[1], said
    if traced == called:
        assert len({each.partition(" (")[0].partition(chr(10))[0] for each in said}) == 1


TIMES: dict[str, tuple[Any, Any, Odd, str]] = {
    "null": (lambda v: v.at, lambda v: python(v.at), Odd(1), "None is no timestamp"),
    "negative": (lambda v: v.n, lambda v: python(v.n), Odd(-1), "-1 is no timestamp"),
    "before": (lambda v: v.at, lambda v: python(v.at), Odd(1, at=WHEN), "-1 is no timestamp"),
    "beyond": (lambda v: v.n + 1, lambda v: python(v.n) + 1, Odd(MOST), f"{MOST + 1} is no timestamp"),
}


@pytest.mark.parametrize("name", TIMES)
def test_what_is_no_time_is_named(spark: Any, name: str) -> None:
    *both, value, why = TIMES[name]
    for function in both:
        app = App("times")
        app.stream("odd", value=Odd, timestamp=function, name="it").to("out")
        said = failure(app, {"odd": [("k", value)]})
        assert said.startswith(f"it: {why}") and "odd-0@0" in said


@dataclass
class Fresh:
    n: int
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Numbers:
    f: float
    d: Decimal
    s: str


@pytest.mark.timeout(400)
def test_what_python_says_comes_out(spark: Any) -> None:
    """Each of these came out otherwise when Spark computed it."""
    app = App("python")
    odd = app.stream("odd", value=Odd)
    odd.to("copy")
    odd.map_values(lambda v: Fresh(v.n), name="fresh").to("fresh")
    app.stream("missing", value=Fresh).to("missing-fresh")
    odd.map_values(lambda v: v.n < 2**64).to("small")
    odd.map_values(lambda v: (v.n * 2654435761) % 4294967296).to("hash")
    app.stream("numbers", value=Numbers).to("numbers-1")
    app.stream("numbers", value=Numbers).to(lambda v: f"numbers-{len('ab')}")
    app.stream("numbers", value=Numbers).map_values(lambda v: v.f != v.f).to("nan")
    for limit in (1, 2, 3):
        odd.filter(lambda v: v.n > limit).to("late")  # noqa: B023
        odd.filter(lambda v: python(v.n) > limit).to("late-py")  # noqa: B023
    app.stream("any", key=Any).group_by_key().count().to("counts")
    app.stream("decimals", value=Decimal).group_by(lambda v: v).count().to("decimals-counts")
    given = [Odd(3, five=None), Odd(MOST)]
    numbers = [
        Numbers(float("nan"), Decimal(1), "\x1f"),
        Numbers(float("-inf"), Decimal("1e-18"), "😀\u2028"),
    ]
    numbers += [Numbers(1e7, Decimal(0), '"\\\x00'), Numbers(-0.0, Decimal("12345678901234567890.5"), "")]
    large = [Decimal(f"12345678901234567890.12345678901234567{n}") for n in (8, 9, 8)]
    written = app.test(
        {
            "odd": given,
            "missing": [b'{"n":1}', b'{"n":2}'],
            "numbers": numbers,
            "any": [(b'{"b":1,"a":2}', "x"), (b'{"a":2.0, "b":1}', "y"), (b'{"a":2,"b":"1"}', "z")],
            "decimals": large,
        }
    )
    assert [each.value for each in written["copy"]] == given
    for topic in ("fresh", "missing-fresh"):
        assert len({each.value.id for each in written[topic]}) == 2
    assert [each.value for each in written["small"]] == [True, True]
    assert [each.value for each in written["hash"]] == [each.n * 2654435761 % 4294967296 for each in given]
    assert repr([each.value for each in written["numbers-1"]]) == repr(numbers)
    assert repr([each.value for each in written["numbers-2"]]) == repr(numbers)
    assert [each.value for each in written["nan"]] == [True, False, False, False]
    assert (
        [each.value.n for each in written["late"]]
        == [each.value.n for each in written["late-py"]]
        == [MOST] * 3
    )
    assert pairs(written["counts"]) == [({"a": 2, "b": 1}, 1), ({"a": 2, "b": 1}, 2), ({"a": 2, "b": "1"}, 1)]
    assert [each.value for each in written["decimals-counts"]] == [1, 1, 2]
