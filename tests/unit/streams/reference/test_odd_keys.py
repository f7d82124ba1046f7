"""Keys that are equal and look different, or look equal and are not: reference and lowering give the same bytes.

Whole topologies run without Spark, a record a micro-batch, and what would be written to topics is compared.
"""

import datetime
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.record import Record
from ottla.streams import (
    App,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    Store,
    TimeLimit,
    TumblingWindow,
    WindowClose,
    WindowStore,
    within,
)
from ottla.streams.lowering.tables import lower_regroup
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.processor import Incoming, Processor, ProcessorContext
from ottla.streams.reference.interpreter import Interpreter
from ottla.streams.types.codec import encoder, plain_decoder
from ottla.streams.types.serde import serde
from tests.unit.streams.stateful.chain import Chain


@dataclass(frozen=True)
class Place:
    x: float
    tags: dict[str, int]


UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))
NEW_YEAR = datetime.datetime(2024, 1, 1, 2, tzinfo=EAST)
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "float": (float, [math.nan, 0.0, -math.nan, -0.0, math.nan, 0.0, -0.0, 1.0]),
    "any": (Any, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}, {"a": True}, {"a": 1}, {"b": 2, "a": 1}, -0.0, 0, "0"]),
    "dict": (dict[str, int], [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"b": 1}, {}, {"b": 2, "a": 1}, {}, {"a": 1}]),
    "place": (Place, [Place(0.0, {"a": 1, "b": 2}), Place(-0.0, {"a": 1, "b": 2}), Place(0.0, {"b": 2, "a": 1}),
                      Place(math.nan, {}), Place(-math.nan, {})]),
    "pair": (tuple[float, str], [(math.nan, "a"), (0.0, "a"), (-math.nan, "a"), (-0.0, "a"), (0.0, "a")]),
    "list": (list[float], [[math.nan], [0.0], [-0.0], [math.nan], [], [-0.0, 0.0], [-0.0]]),
    "set": (set[str], [{"a", "b", "c"}, {"c", "b", "a"}, set(), {"a"}]),
    "decimal": (Decimal, [Decimal("1.50"), Decimal("1.5"), Decimal("-0.0"), Decimal(0), Decimal("1E1"), Decimal(10)]),
    "time": (datetime.datetime, [NEW_YEAR, NEW_YEAR.astimezone(UTC)]),
}  # fmt: skip


class Kept(Processor):
    """Forwards all that it has in its stores."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen, self.when = context.store("seen"), context.store("when")

    def process(self, record: Incoming) -> None:
        count = self.seen.setdefault(record.key, 0.0)
        self.seen[record.key] = (count or 0) + 1
        self.when.put(record.key, 1, record.timestamp)
        for key, value in self.seen.items():
            self.context.forward(key, int(value))
        for key, time, _ in self.when.items():
            self.context.forward(key, time)


class Same(Processor):
    """Forwards what comes."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Incoming) -> None:
        self.context.forward(record.key, record.value)


Say = Callable[[Any, App, Any], None]
BY = {"key": list, "value": list}


def other_key(known: list[Any]) -> Callable[[Any, int], Any]:
    return lambda key, value: known[(value * 3 + 1) % len(known)]


def windows(window: Any, *, close: bool) -> Say:
    def say(known: Any, app: App, kind: Any) -> None:
        grouped = app.stream("t", key=kind, value=int).group_by_key()
        grouped.windowed_by(window, emit="close" if close else "update").count().to("o")

    return say


def regrouped(known: Any, app: App, kind: Any, method: str = "count") -> None:
    table = app.table("t", key=kind, value=int)
    choose = other_key(known)
    grouped = table.group_by(lambda k, v: (choose(k, v), v), key=kind, value=int)
    if method == "count":
        grouped.count().to("o")
    else:
        grouped.reduce(lambda a, b: a + b, lambda a, b: a - b).to("o")


def streams(known: Any, app: App, kind: Any, how: str = "outer_join") -> None:
    one, two = app.stream("t", key=kind, value=int), app.stream("u", key=kind, value=int)
    getattr(one, how)(two, lambda a, b: (a or 0) * 100 + (b or 0), within=within(3), value=int).to("o")


def tables(known: Any, app: App, kind: Any) -> None:
    one, two = app.table("t", key=kind, value=int), app.table("u", key=kind, value=int)
    one.outer_join(two, lambda a, b: (a or 0) * 100 + (b or 0), value=int).to("o")


def looked_up(known: Any, app: App, kind: Any) -> None:
    one, two = app.stream("t", key=kind, value=int), app.table("u", key=kind, value=int)
    one.left_join(two, lambda a, b: a * 100 + (b or 0), value=int).to("o")


def referring(known: Any, app: App, kind: Any, how: str = "join") -> None:
    one, two = app.table("t", key=kind, value=int), app.table("u", key=kind, value=int)
    getattr(one, how)(two, lambda a, b: a * 100 + (b or 0), on=other_key(known), value=int).to("o")


def gathered(known: Any, app: App, kind: Any) -> None:
    one, two = (app.stream(each, key=kind, value=int).group_by_key() for each in "tu")
    both = one.cogroup(lambda v, total: total + v, value=int).cogroup(two, lambda v, total: total - v)
    both.aggregate(lambda: 0).to("o")


def processed(known: Any, app: App, kind: Any) -> None:
    stores = [Store("seen", kind, float), WindowStore("when", kind, int, retention=5)]
    app.stream("t", key=kind, value=int).process(Kept, stores=stores).to("o")


def keyed(known: Any, app: App, kind: Any) -> None:
    stream, choose = app.stream("t", key=kind, value=int), other_key(known)
    stream.select_key(choose, key=kind).to("o")
    stream.map(lambda k, v: (choose(k, v), v), key=kind, value=int).to("o")
    stream.flat_map(lambda k, v: [(choose(k, v), v)] * 2, key=kind, value=int).distinct().to("o")


SAID: dict[str, Say] = {
    "count": lambda known, app, kind: app.stream("t", key=kind, value=int).group_by_key().count().to("o"),
    "distinct": lambda known, app, kind: app.stream("t", key=kind, value=int).distinct(within=4).to("o"),
    "table": lambda known, app, kind: app.table("t", key=kind, value=int).filter(lambda v: v % 3 > 0).to("o"),
    "suppress": lambda known, app, kind: app.table("t", key=kind, value=int).suppress(TimeLimit(3)).to("o"),
    "final": lambda known, app, kind: (
        app.stream("t", key=kind, value=int).group_by_key().windowed_by(TumblingWindow(4)).count()
        .suppress(WindowClose()).to("o")
    ),
    "tumbling": windows(TumblingWindow(4), close=True),
    "hopping": windows(HoppingWindow(6, 2), close=False),
    "sliding": windows(SlidingWindow(3), close=True),
    "session": windows(SessionWindow(2), close=True),
    "sessions": windows(SessionWindow(3), close=False),
    "regroup": regrouped,
    "regroup-sum": lambda *given: regrouped(*given, method="reduce"),
    "outer": streams,
    "left": lambda *given: streams(*given, how="left_join"),
    "tables": tables,
    "stream-table": looked_up,
    "foreign": referring,
    "foreign-left": lambda *given: referring(*given, how="left_join"),
    "cogroup": gathered,
    "process": processed,
    "process_values": lambda known, app, kind: (
        app.stream("t", key=kind, value=int).process_values(Same).to("o")
    ),
    "keys": keyed,
}  # fmt: skip


class Raw(Chain):
    """Gives what leaves as the bytes that it is."""

    def _row(self, row: dict[str, Any]) -> Any:
        return row["topic"], row["key"], row["value"]


def records(kind: Any, known: list[Any]) -> list[tuple[str, bytes, int]]:
    """Topic, key and value: each key comes to both topics, more than once."""
    encode = encoder(serde(kind))
    keys = [encode(each) for each in known]
    return [
        ("tu"[(n // len(keys) + n) % 2], keys[(n * 5 + n // len(keys)) % len(keys)], n)
        for n in range(3 * len(keys))
    ]


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("said", SAID)
def test_one_key_is_one_whoever_computes(said: str, kind: str) -> None:
    type, known = KEYS[kind]
    app = App("keys")
    SAID[said](known, app, type)
    plan = app.plan()
    running, chain = Interpreter(plan), Raw(app)
    (source, *_) = plan.sources
    decode, number = plain_decoder(source.key_serde), encoder(serde(int))
    topics = {topic for each in plan.sources for topic in each.topics}
    expected, found = [], []
    for n, (topic, key, value) in enumerate(records(type, known)):
        if topic not in topics:
            continue
        raw = Record(topic, 0, n, n, key, number(value))
        expected += [(each.raw.topic, each.raw.key, each.raw.value) for each in running.feed(raw) if each.raw]
        found += chain.batch({(topic, 0): [(decode(key), value, n)]})
    assert found == expected
    assert expected


@pytest.mark.parametrize("kind", KEYS)
def test_a_table_is_grouped_anew_alike_on_a_path_alone(kind: str) -> None:
    """There it is not one of the functions that call one another, but a pass over batches."""
    type, known = KEYS[kind]
    app = App("keys")
    regrouped(known, app, type)
    plan = app.plan()
    (node,) = [each for each in plan.nodes if isinstance(each, Regroup)]
    (table,) = node.inputs
    decode = plain_decoder(table.key_serde)
    rows = [(decode(key), value, value + 1) for _, key, value in records(type, known)]
    passed: list[pa.RecordBatch] = []
    columns = {
        "key": [each[0] for each in rows],
        "value": [each[1] for each in rows],
        "old": [each[2] for each in rows],
    }
    from ottla.streams.lowering.datatypes import arrow_type

    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(columns["key"], arrow_type(table.key)),
            pa.array(columns["value"]),
            pa.array(columns["old"]),
        ]
        + [pa.array([0] * len(rows))] * 5,
        names=["key", "value", "old", "timestamp", "headers", "topic", "partition", "offset"],
    )
    frame: Any = SimpleNamespace(mapInArrow=lambda call, schema: passed.extend(call([batch])))
    none: Any = None
    lower_regroup(node, [frame], none)
    from ottla.streams.lowering.stateful.plain import values
    from ottla.streams.reference.change import Change
    from ottla.streams.reference.keys import key_bytes
    from ottla.streams.reference.operators import operator_of

    groups = operator_of(node, {})
    expected = [
        (key_bytes(node.key, each.key), each.value)
        for key, value, old in rows
        for each in groups.take(0, Change(key, value, 0, old))
    ]
    found = [
        (key_bytes(node.key, key), value)
        for each in passed
        for key, value in zip(values(each.column("key")), values(each.column("value")), strict=True)
    ]
    assert found == expected


def test_keys_are_those_of_kafka_streams() -> None:
    """They are one where their bytes are: so NaN is one key, and the two zeros are two."""
    app = App("zeros")
    app.stream("t", key=float).group_by_key().windowed_by(TumblingWindow(4), emit="close").count().to("o")
    given = [
        (0.0, "x", 0),
        (-0.0, "x", 1),
        (math.nan, "x", 2),
        (-math.nan, "x", 3),
        (-0.0, "x", 3),
        (1.0, "x", 9),
    ]
    found = [(struct.pack(">d", each.key.key), each.value) for each in app.test({"t": given})["o"]]
    assert sorted(found) == sorted(
        [(struct.pack(">d", 0.0), 1), (struct.pack(">d", -0.0), 2), (struct.pack(">d", math.nan), 2)]
    )
