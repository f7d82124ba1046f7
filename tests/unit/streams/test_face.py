"""What programs say becomes a plan: names, types, and what is refused before anything runs."""

from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from ottla.streams import (
    App,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    Store,
    TimeLimit,
    TopologyError,
    TumblingWindow,
    TypeMismatch,
    WindowClose,
    serde,
)
from ottla.streams.plan.aggregates import Aggregate, Cogroup, Regroup, TableAggregate
from ottla.streams.plan.joins import ForeignKeyJoin, GlobalTableJoin, StreamJoin, StreamTableJoin, TableJoin
from ottla.streams.plan.sinks import To
from ottla.streams.plan.stateless import Branch
from ottla.streams.types.struct import WindowedKey
from ottla.streams.types.type import Integer, Text


@dataclass
class Order:
    id: int
    user: str
    total: float


@dataclass
class User:
    name: str


@pytest.fixture
def app() -> App:
    return App("app")


def last(app: App) -> Any:
    return app.plan().nodes[-1]


def test_operators_are_named_by_what_they_are_and_counted(app: App) -> None:
    lines = app.stream("lines")
    lines.filter(lambda v: v != "").filter(lambda v: v != "x", name="mine").filter(lambda v: v != "y")
    assert [each.name for each in app.plan().nodes] == ["stream-1", "filter-1", "mine", "filter-2"]


def test_a_name_is_used_once(app: App) -> None:
    app.stream("a", name="one")
    with pytest.raises(TopologyError, match="two operators 'one'"):
        app.stream("b", name="one")
    with pytest.raises(TopologyError, match="no name"):
        app.stream("b", name="a b")


def test_a_plan_is_frozen(app: App) -> None:
    app.stream("lines").to("other")
    node = last(app)
    with pytest.raises(FrozenInstanceError):
        node.topic = "x"


def test_the_same_topic_is_read_once(app: App) -> None:
    assert app.stream("a")._node is app.stream("a")._node
    assert app.stream("a")._node is not app.stream("a", value=int)._node


def test_types_flow(app: App) -> None:
    orders = app.stream("orders", key=int, value=Order)
    node = orders.map(lambda k, v: (v.user, v.total))._node
    assert (str(node.key), str(node.value)) == ("string", "double")
    assert str(orders.select_key(lambda v: v.user)._node.key) == "string"
    assert str(orders.map_values(lambda v: v)._node.value) == "Order"
    assert str(orders.flat_map_values(lambda v: v.user.split())._node.value) == "string"
    flat = orders.flat_map(lambda k, v: [(v.user, v.id), ("x", 1)])._node
    assert (str(flat.key), str(flat.value)) == ("string", "bigint")
    assert orders.flat_map(max, key=str, value=int)._node.value == Integer()


def test_branches_take_what_earlier_ones_leave(app: App) -> None:
    one, two = app.stream("a", value=int).branch(lambda v: v > 1, lambda v: v > 0)
    assert isinstance(one._node, Branch) and isinstance(two._node, Branch)
    assert two._node.predicates[0].place == one._node.predicates[0].place
    assert [len(each._node.predicates) for each in (one, two)] == [1, 2]
    ways = app.stream("a", value=int).split({"big": lambda v: v > 1}, default="rest", name="size")
    assert set(ways) == {"big", "rest"}
    assert [each.name for each in ways.values()] == ["size-1", "size-rest"]
    assert ways["rest"]._node.rest  # type: ignore[attr-defined]


def test_streams_of_other_types_or_apps_do_not_merge(app: App) -> None:
    with pytest.raises(TypeMismatch, match="stream-2 is string → bigint, and stream-1 is string → string"):
        app.stream("a").merge(app.stream("b", value=int))
    with pytest.raises(TopologyError, match="of another app"):
        app.stream("a").merge(App("other").stream("a"))


def test_sinks_have_the_serdes_of_their_types_unless_told(app: App) -> None:
    numbers = app.stream("a", value=int)
    numbers.to("b")
    assert str(last(app).value_serde) == "long"
    numbers.to("b", value="json", key=serde(str))
    assert last(app).value_serde.format == "json"
    with pytest.raises(TypeMismatch, match="the value is bigint, and cannot be written as string"):
        numbers.to("b", value=str)


def test_a_topic_may_be_a_function(app: App) -> None:
    app.stream("a").to(lambda k, v: v + "-topic", partitioner=lambda v: 0)
    node = last(app)
    assert isinstance(node, To) and node.topic is None and node.extractor is not None
    assert node.partitioner is not None


def test_a_table_is_written_compacted(app: App) -> None:
    app.table("a").to("b")
    assert last(app).compacted
    app.table("a").to_stream().to("c")
    assert not last(app).compacted


def test_counts_and_aggregates(app: App) -> None:
    grouped = app.stream("orders", value=Order).group_by(lambda v: v.user)
    assert grouped.count()._node.value == Integer()
    assert str(grouped.reduce(lambda a, b: a)._node.value) == "Order"
    table = grouped.aggregate(float, lambda v, total: total + v.total)
    assert isinstance(table._node, Aggregate) and str(table._node.value) == "double"
    assert table._node.adder is not None and table._node.adder.parameters == ("value", "aggregate")
    assert (
        str(grouped.aggregate(list, lambda v, ids: [*ids, v.id], value=list[int])._node.value)
        == "array<bigint>"
    )
    assert str(grouped.aggregate(lambda: User(""), lambda v, u: u)._node.value) == "User"
    with pytest.raises(TopologyError, match="does not say what the aggregates will be"):
        grouped.aggregate(lambda: [], lambda v, ids: ids)  # noqa: PIE807


@pytest.mark.parametrize(
    ("window", "size"),
    [
        (TumblingWindow("1 minute"), 60_000),
        (HoppingWindow(20, 10), 20),
        (SlidingWindow(5), 5),
        (SessionWindow("1 s"), None),
    ],
)
def test_windows_are_in_the_key(app: App, window: Any, size: int | None) -> None:
    node = app.stream("a").group_by_key().windowed_by(window).count()._node
    assert node.key == WindowedKey(Text(), session=size is None, size_ms=size)


def test_sessions_want_a_merger(app: App) -> None:
    sessions = app.stream("a").group_by_key().windowed_by(SessionWindow("1 s"))
    with pytest.raises(TopologyError, match="two sessions may become one"):
        sessions.aggregate(int, lambda v, n: n + 1)
    assert sessions.aggregate(int, lambda v, n: n + 1, lambda a, b: a + b)._node.merger is not None  # type: ignore[attr-defined]
    assert sessions.reduce(lambda a, b: a)._node.merger is not None  # type: ignore[attr-defined]
    with pytest.raises(TopologyError, match="for session windows alone"):
        app.stream("a").group_by_key().aggregate(int, lambda v, n: n + 1, lambda a, b: a + b)


def test_cogroups(app: App) -> None:
    clicks, buys = app.stream("clicks").group_by_key(), app.stream("buys", value=int).group_by_key()
    both = clicks.cogroup(lambda v, n: n + 1, value=int).cogroup(buys, lambda v, n: n + v)
    node = both.windowed_by(TumblingWindow(10)).aggregate(int)._node
    assert isinstance(node, Cogroup)
    assert [each.name for each in node.inputs] == ["stream-1", "stream-2"]
    with pytest.raises(TypeMismatch, match="the keys are string and bigint"):
        both.cogroup(app.stream("x", key=int).group_by_key(), lambda v, n: n)


def test_tables_are_regrouped(app: App) -> None:
    table = app.table("users", value=User).group_by(lambda k, v: (v.name, 1)).count()
    node = table._node
    assert isinstance(node, TableAggregate) and isinstance(node.input, Regroup)
    assert node.input.value.ddl() == "struct<`added`:bigint,`removed`:bigint>"


def test_joins(app: App) -> None:
    orders, clicks = app.stream("orders", value=Order), app.stream("clicks")
    users, names = app.table("users", value=User), app.global_table("names", key=int)
    joined = orders.join(clicks, lambda o, c: o.user + c, within="5 minutes")._node
    assert isinstance(joined, StreamJoin) and joined.window.before_ms == joined.window.after_ms == 300_000
    assert joined.joiner.parameters == ("left", "right")
    assert isinstance(orders.join(users, lambda o, u: o.user + u.name)._node, StreamTableJoin)
    looked = orders.left_join(names, lambda o, n: n, on=lambda v: v.id, value=str)._node
    assert isinstance(looked, GlobalTableJoin) and looked.how == "left"
    assert isinstance(users.join(users, lambda a, b: a.name)._node, TableJoin)
    foreign = users.join(app.table("orders", value=Order), lambda u, o: o.id, on=lambda v: v.name)._node
    assert isinstance(foreign, ForeignKeyJoin)


def test_what_may_be_missing_is_not_computed_with(app: App) -> None:
    users = app.table("users", value=User)
    found = app.stream("a").left_join(users, lambda v, u: v, value=str)._node
    assert found.joiner.parameters == ("left", "right")  # type: ignore[attr-defined]
    with pytest.raises(TopologyError, match="nothing says what the function"):
        # u may be None, so Spark does not compute u.name; nor does anybody say what it is.
        app.stream("a").left_join(users, lambda v, u: u.name)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda app: app.stream("a").join(app.stream("b"), lambda a, b: a), "within a span of time"),
        (lambda app: app.stream("a").join(app.stream("b", key=int), lambda a, b: a, within=1), "the keys of"),
        (lambda app: app.stream("a").outer_join(app.table("b"), lambda a, b: a, within=1), "no outer join"),
        (lambda app: app.table("a").join(app.stream("b"), lambda a, b: a), "joined with a table"),
        (
            lambda app: app.table("a").outer_join(app.table("b", key=int), lambda a, b: a, value=str),
            "the keys of",
        ),
        (lambda app: app.stream("a").join(app.global_table("b", key=int), lambda a, b: a), "the keys are"),
        (lambda app: app.table("a").suppress(WindowClose()), "no window to wait for"),
        (lambda app: app.table("a").suppress(5), "neither WindowClose"),
        (lambda app: app.stream("a").group_by_key().windowed_by(5), "no window"),
        (
            lambda app: app.stream("a").group_by_key().windowed_by(TumblingWindow(1), emit="never"),
            "neither 'update'",
        ),
        (lambda app: app.stream("a").map(lambda v: v), "not a key and a value"),
        (lambda app: app.stream("a").map(max, key=str), "give the types of both"),
        (lambda app: app.stream("a").repartition(0), "partitions are none"),
        (lambda app: app.stream("a").branch(), "at least one"),
        (lambda app: app.stream(), "a source reads topics"),
        (lambda app: app.stream("a", starting="soon"), "earliest or latest"),
        (lambda app: app.stream("a").process(object, stores=[Store("s"), Store("s")]), "two stores"),
        (lambda app: app.stream("a", timestamp=lambda v: v), "returns string, no time"),
        (lambda app: TumblingWindow(0), "longer than nothing"),
        (lambda app: TumblingWindow("soon"), "no span of time"),
        (lambda app: HoppingWindow(5, 10), "records would be lost"),
        (lambda app: TimeLimit(1, when_full="explode"), "neither 'emit' nor 'fail'"),
        (lambda app: App("app", nonsense=1), "has no setting nonsense"),
        (lambda app: App("app", bootstrap_server="x"), "did you mean bootstrap_servers"),
        (lambda app: App("app", updates="some"), "all or last"),
        (lambda app: App("a/b"), "no name for an app"),
        (lambda app: App("app").run(), "nothing to run"),
        (lambda app: app.stream("a") and app.start(), "nothing comes of this topology"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(app: App, wrong: Callable[[App], Any], why: str) -> None:
    with pytest.raises(TopologyError, match=why):
        wrong(app)


def test_settings_go_where_they_belong() -> None:
    app = App(
        "app", ["a:1", "b:2"], fetch_max_bytes=5, linger_ms=7, client_id="me", guarantee="at-least-once"
    )
    assert app.settings.source_options == {
        "groupId": "app",
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.fetch.max.bytes": "5",
        "kafka.client.id": "me",
    }
    assert app.settings.sink_options == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "guarantee": "at-least-once",
        "kafka.linger.ms": "7",
        "kafka.client.id": "me",
    }
    assert App("app").settings.sink_options["transactionalId"] == "ottla-streams-app"
    assert App("app").settings.checkpoint == "ottla-checkpoints/app"


@pytest.mark.parametrize(
    ("use", "hint"),
    [
        (lambda stream: stream.mapValues, "did you mean map_values?"),
        (lambda stream: stream.groupByKey, "did you mean group_by_key?"),
        (lambda stream: stream.count, "group first, as in stream.group_by_key().count()"),
        (lambda stream: stream.windowedBy, "group first, as in stream.group_by_key().windowed_by"),
        (lambda stream: stream.fliter, "did you mean filter?"),
        (lambda stream: stream.group_by_key().windowedBy, "did you mean windowed_by?"),
        (lambda stream: stream.to_table().flatMap, "it is a stream's: table.to_stream() is one"),
        (lambda stream: stream.to_table().reduce, "group first, as in table.group_by"),
    ],
)
def test_a_name_that_is_not_there_says_what_is_meant(use: Callable[[Any], Any], hint: str, app: App) -> None:
    with pytest.raises(AttributeError) as missing:
        use(app.stream("a"))
    assert f"\nhint: {hint}" in str(missing.value)


def test_what_python_itself_looks_for_is_simply_not_there(app: App) -> None:
    stream = app.stream("a")
    assert not hasattr(stream, "__len__") and not hasattr(stream, "_ipython_display_")
    assert copy(stream).name == stream.name


def test_an_aggregate_begins_with_a_function(app: App) -> None:
    with pytest.raises(TopologyError, match=r"was given 0\nhint: give a function: lambda: 0"):
        app.stream("a").group_by_key().aggregate(0, lambda k, v, n: n + 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "build",
    [
        lambda app: app.stream("bad topic"),
        lambda app: app.stream(["good", ""]),
        lambda app: app.table("a/b"),
        lambda app: app.stream("a").to("bad topic"),
        lambda app: app.table("a").to(".."),
        lambda app: App("other", dead_letters="bad topic"),
    ],
)
def test_a_topic_has_a_name_that_a_topic_can_have(build: Callable[[App], Any], app: App) -> None:
    with pytest.raises(TopologyError, match="Topic name is invalid"):
        build(app)
