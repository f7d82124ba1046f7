"""Functions that can be read as expressions, and those that must be called."""

import datetime
import enum
import re
import uuid
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

from ottla.streams.expression.code import Unreadable
from ottla.streams.expression.ranges import bounds
from ottla.streams.expression.tracing import read as read_expression
from ottla.streams.expression.tracing import trace
from ottla.streams.expression.tree import needed
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import WindowedKey
from ottla.streams.types.type import Text


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"


@dataclass
class Part:
    sku: str


@dataclass
class Order:
    id: int
    user: str
    total: float
    status: Status
    part: Part
    names: list[str]
    ok: bool
    at: datetime.datetime
    note: str | None = None

    @property
    def double(self) -> float:
        return self.total * 2


@dataclass
class Line:
    user: str
    total: float
    note: str | None = None


@dataclass
class Checked:
    n: int

    def __post_init__(self) -> None:
        assert self.n > 0


@dataclass
class Fresh:
    name: str
    # But for its factory it could be None, which Spark can make.
    id: str | None = field(default_factory=lambda: str(uuid.uuid4()))


class Pair(NamedTuple):
    n: int


class Absolute(Pair):
    def __new__(cls, n: int) -> "Absolute":
        return super().__new__(cls, abs(n))


class Loud(Pair):
    @property
    def n(self) -> int:  # type: ignore[override]
        return 0


@dataclass
class Lowered:
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.lower()


TWICE = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
LIMIT = 10
WHEN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
calls: list[Any] = []


def helper(value: Any) -> bool:
    calls.append(value)
    return True


def read(function: Callable[..., Any], **offered: Any) -> Any:
    offered = offered or {"key": str, "value": Order}
    names = dict(list(offered.items())[-function.__code__.co_argcount :])
    return trace(function, {name: type_of(each) for name, each in names.items()})


@pytest.mark.parametrize(
    ("function", "type"),
    [
        (lambda v: v.total > 10, "boolean"),
        (lambda v: (v.total > LIMIT) & v.ok | (v.id == 3), "boolean"),
        (lambda v: v.status == Status.PAID, "boolean"),
        (lambda v: v.at < WHEN, "boolean"),
        (lambda v: v.note == None, "boolean"),  # noqa: E711
        (lambda v: v.note != "x", "boolean"),
        (lambda v: v.user.strip().lower(), "string"),
        (lambda v: v.user + "-" + v.part.sku, "string"),
        (lambda v: v.user[:3], "string"),
        (lambda v: str(v.id), "string"),
        (lambda v: len(v.names), "bigint"),
        (lambda v: (v.id + 1) * 2 % 7 // 2 - abs(-v.id), "bigint"),
        (lambda v: v.total / 2 + v.id, "double"),
        (lambda v: v.id / 2, "double"),
        (lambda v: float(v.id), "double"),
        (lambda v: v.names, "array<string>"),
        (lambda v: v.user.split(","), "array<string>"),
        (lambda v: [v.user, "x"], "array<string>"),
        (lambda v: (v.user, 1), "struct<`_1`:string,`_2`:bigint>"),
        (lambda k, v: (k, v.total), "struct<`_1`:string,`_2`:double>"),
        (lambda v: Line(v.user, total=v.id), "struct<`user`:string,`total`:double,`note`:string>"),
        (lambda v: Line(v.user, 0, v.note), "struct<`user`:string,`total`:double,`note`:string>"),
        (lambda v: v.note, "string"),
        (lambda v: 1, "bigint"),
        (lambda v: v.id < 2**64, "boolean"),
        (lambda v: v.id * 2654435761 % 4294967296, "bigint"),
        (lambda v: v.id * v.id, "bigint"),
        (lambda v: (v.id + v.id) // 2, "bigint"),
        (lambda v: v.id / 100, "double"),
        (lambda v: v.id > v.total, "boolean"),
    ],
)
def test_read(function: Callable[..., Any], type: str) -> None:
    found = read(function)
    assert found is not None
    assert found.type.ddl() == type


def test_windows_have_ends() -> None:
    found = read(lambda key: key.window.start + len(key.key), key=WindowedKey(Text()))
    assert found.type.ddl() == "bigint"


def test_locals_are_fine() -> None:
    def total(v: Order) -> float:
        half = v.total * 0.5
        return half + 1

    assert read(total).type.ddl() == "double"


def test_methods_of_text_by_their_name() -> None:
    assert trace(str.lower, {"value": Text()}) is not None
    assert trace(str.lower, {"value": type_of(int)}) is None
    assert trace(str.title, {"value": Text()}) is None


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v.total > 10 and v.ok,
        lambda v: not v.ok,
        lambda v: ~v.ok,
        lambda v: v.user if v.ok else "",
        lambda v: v is not None and v.ok,
        lambda v: v.note is None,
        lambda v: "x" in v.user,
        lambda v: [n for n in v.names],  # noqa: C416
        lambda v: f"{v.user}",
        lambda v: "%s" % v.user,  # noqa: UP031
        lambda v: helper(v),  # noqa: PLW0108
        lambda v: re.sub("a", "b", v.user),
        lambda v: v.total / v.id,
        lambda v: v.id / 0,
        lambda v: v.total // 2,
        lambda v: v.note > "x",
        lambda v: v.note + "x",
        lambda v: len(v.note),
        lambda v: v.names[0],
        lambda v: v.user[-1],
        lambda v: v.user[::2],
        lambda v: v.nothing,
        lambda v: v.double,
        lambda v: v.id + v.user,
        lambda v: v.id & 1,
        lambda v: v.user * 2,
        lambda v: v == v,
        lambda v: int(v.user),
        lambda v: round(v.total),
        lambda v: sum([v.id]),
        lambda v: replace(v, id=1),
        lambda v: Line(v.id, 1),
        lambda v: Line(v.user),  # type: ignore[call-arg]
        lambda v: Checked(v.id),
        lambda v: Status(v.user),
        lambda v: v.id * v.id * v.id,
        lambda v: v.id < 10**40,
        lambda v: v.id * v.id > v.total,
        lambda v: v.id / 1234567,
        lambda v: v.id % (1 << 64),
        lambda v: Fresh(v.user),
        lambda v: Absolute(v.id),
        lambda v: "abc" % v.user,  # noqa: F507, UP031
        lambda v: WHEN.now(),
        lambda v: v.at < TWICE,
        lambda v: v.at.year,
        lambda v: {"a": v.id},
        lambda v: [v.id, v.user],
        lambda v: None,
        lambda *v: v,
        lambda v: (yield v),
    ],
)
def test_must_be_called(function: Callable[..., Any]) -> None:
    if function.__code__.co_argcount == 0:
        assert trace(function, {"value": type_of(Order)}) is None
    else:
        assert read(function) is None
    assert calls == []


def test_why_a_default_that_is_made_is_called() -> None:
    with pytest.raises(Unreadable, match="the default of id is made anew for each record"):
        read_expression(lambda v: Fresh(v.user), {"value": type_of(Order)})
    assert read(lambda v: Fresh(v.user, v.note)) is not None


def test_anything_is_not_looked_into() -> None:
    assert read(lambda v: v["a"], value=Any) is None
    assert read(lambda v: v, value=Any) is not None


def test_rows_are_looked_into_both_ways() -> None:
    row = "name string not null, age int"
    assert read(lambda v: v.name.upper(), value=row) is not None
    assert read(lambda v: v["name"] + "!", value=row) is not None
    assert read(lambda v: v.age + 1, value=row) is None


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda k, v: v.total > 1, {"value"}),
        (lambda k, v: (k, v), set()),
        (lambda k, v: k == None, set()),  # noqa: E711
        (lambda k, v: k == "x", set()),
        (lambda k, v: (k.lower(), v.id), {"key", "value"}),
        (lambda k, v: Line(k, 1.0), {"key"}),
        (lambda k, v: str(k), set()),
        (lambda k, v: Line(str(k), 1.0), set()),
        (lambda k, v: str(k) + v.user, {"value"}),
    ],
)
def test_what_must_be_there(function: Callable[..., Any], names: set[str]) -> None:
    assert needed(read(function)) == names


@pytest.mark.parametrize("made", [Lowered, Absolute, Loud])
def test_what_is_not_what_it_was_given_is_not_looked_into(made: type) -> None:
    """Spark has what it was given; Python sees what its class has made of that."""
    assert read(lambda v: v.n if made is None else v, value=made) is None
    assert read(lambda v: v, value=made) is not None
    assert (read(lambda v: v.name, value=made) or read(lambda v: v.n, value=made)) is None


def test_fields_of_rows_that_dicts_have_methods_for() -> None:
    assert read(lambda v: v.items, value="items string") is None
    assert read(lambda v: v["items"], value="items string") is not None


def test_what_a_list_or_a_pair_may_hold() -> None:
    pair = read(lambda k, v: [(k, v.id)])
    assert needed(pair, 2) == {"value"} and needed(pair, 1) == needed(pair, 0) == {"key", "value"}
    assert needed(read(lambda k, v: Line(v.user, 1, k))) == {"value"}


def test_bounds() -> None:
    assert bounds(read(lambda v: v.id % -7)) == (-6, 0)
    assert bounds(read(lambda v: abs(v.id))) == (0, 1 << 63)
    assert bounds(read(lambda v: v.id // -1)) == (-(1 << 63) + 1, 1 << 63)
    assert bounds(read(lambda v: len(v.user) * -2)) == (-(2**32) + 2, 0)
    assert bounds(read(lambda v: v.a - 1, value="a smallint not null")) == (-(2**15) - 1, 2**15 - 2)
