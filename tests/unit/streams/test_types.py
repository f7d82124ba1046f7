"""Types: what a program writes, what Spark calls it, and the way there and back."""

import datetime
import enum
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, Optional

import pytest

from ottla.streams.errors import TypeMismatch
from ottla.streams.types.build import type_of
from ottla.streams.types.serde import serde
from ottla.streams.types.struct import Row, Window, Windowed, WindowedKey
from ottla.streams.types.type import Instant, Integer, Real, Text, Type


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: int
    total: Decimal
    at: datetime.datetime
    day: datetime.date
    colour: Colour
    items: list[Item]
    tags: dict[str, str]
    ok: bool
    weight: float
    raw: bytes
    where: Point
    level: Level
    anything: Any
    note: Optional[str] = None  # noqa: UP045
    seen: datetime.datetime | None = None
    more: list[str] = field(default_factory=list)


WEST = datetime.timezone(datetime.timedelta(hours=-1))
NOW = datetime.datetime(2024, 2, 3, 4, 5, 6, 789000, tzinfo=datetime.UTC)
ORDER = Order(
    id=7,
    total=Decimal("12.50"),
    at=NOW,
    day=datetime.date(2024, 2, 3),
    colour=Colour.BLUE,
    items=[Item("a", 2), Item("b")],
    tags={"k": "v"},
    ok=True,
    weight=1.5,
    raw=b"\x00\xff",
    where=Point(1, 2),
    level=Level.HIGH,
    anything={"a": [1, None, "x"]},
    seen=NOW,
)


@pytest.mark.parametrize(
    ("given", "ddl"),
    [
        (str, "string"),
        (bytes, "binary"),
        (bool, "boolean"),
        (int, "bigint"),
        (float, "double"),
        (Decimal, "decimal(38,18)"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
        (Any, "string"),
        (dict, "string"),
        (Colour, "string"),
        (str | None, "string"),
        (list[int], "array<bigint>"),
        (tuple[int, ...], "array<bigint>"),
        (tuple[str, int], "struct<`_1`:string,`_2`:bigint>"),
        (dict[str, list[float]], "map<string,array<double>>"),
        (Item, "struct<`sku`:string,`count`:bigint>"),
        (Point, "struct<`x`:bigint,`y`:bigint>"),
        ("name string, age int not null", "struct<`name`:string,`age`:int>"),
        ("array<struct<a: decimal(10,2)>>", "array<struct<`a`:decimal(10,2)>>"),
        ("map<string, bigint>", "map<string,bigint>"),
        ("`odd name` string, s struct<x:array<date>>", "struct<`odd name`:string,`s`:struct<`x`:array<date>>>"),
    ],
)  # fmt: skip
def test_what_spark_calls_it(given: Any, ddl: str) -> None:
    assert type_of(given).ddl() == ddl


def test_a_schema_of_sparks_is_a_type() -> None:
    class Schema:
        def jsonValue(self) -> Any:
            fields = [
                {"name": "a", "type": "long", "nullable": False, "metadata": {}},
                {
                    "name": "b",
                    "type": {"type": "array", "elementType": "string", "containsNull": False},
                    "nullable": True,
                    "metadata": {},
                },
                {
                    "name": "c",
                    "type": {
                        "type": "map",
                        "keyType": "string",
                        "valueType": "double",
                        "valueContainsNull": True,
                    },
                    "nullable": True,
                    "metadata": {},
                },
            ]
            return {"type": "struct", "fields": fields}

    assert type_of(Schema()).ddl() == "struct<`a`:bigint,`b`:array<string>,`c`:map<string,double>>"


def as_dicts(type: Type, given: Any) -> Any:
    """What Arrow would give for what was dumped: structs as dicts."""
    fields = getattr(type, "fields", None)
    if fields is not None and given is not None:
        return {each.name: as_dicts(each.type, part) for each, part in zip(fields, given, strict=True)}
    if hasattr(type, "of") and isinstance(given, list):
        return [as_dicts(type.of, each) for each in given]
    if hasattr(type, "of") and isinstance(given, tuple):
        return as_dicts(type.of, given)
    return given


def test_what_is_dumped_is_loaded_again_by_position_and_by_name() -> None:
    order = type_of(Order)
    plain = order.dump(ORDER)
    assert order.load(plain) == ORDER
    assert order.load(as_dicts(order, plain)) == ORDER


def test_decimals_lose_the_zeros_that_spark_adds() -> None:
    exact = type_of(Decimal)
    assert str(exact.load(Decimal("12.500000000000000000"))) == "12.5"
    assert str(exact.load(Decimal("1200.000000000000000000"))) == "1200"
    with pytest.raises(TypeMismatch, match="does not fit"):
        type_of("decimal(4,2)").dump(Decimal("123.45"))


def test_times_are_utc() -> None:
    with pytest.raises(TypeMismatch, match="has no time zone, so it does not say which moment it is"):
        Instant().dump(datetime.datetime(2024, 1, 1))
    east = datetime.timezone(datetime.timedelta(hours=2))
    loaded = Instant().load(datetime.datetime(2024, 1, 1, 2, tzinfo=east))
    assert loaded == datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) and loaded.tzinfo is datetime.UTC


@pytest.mark.parametrize(
    ("type", "wrong", "why"),
    [
        (str, 1, "not a str"),
        (int, "1", "not an int"),
        (int, True, "not an int"),
        (int, 1 << 63, "64 bits"),
        ("int", 1 << 31, "32 bits"),
        (float, "1", "not a float"),
        (bool, 1, "not a bool"),
        (bytes, "x", "not bytes"),
        (list[int], "ab", "not a list"),
        (list[int], [1, None], "not an int"),
        (dict[str, int], {"a": "b"}, "not an int"),
        (Item, ("a", 1), "not a Item"),
        (Item, Item(None, 1), "field sku: None is None, not a str"),  # type: ignore[arg-type]
        (Colour, "red", "not a Colour"),
        (tuple[int, int], (1,), "a tuple of 2"),
        ("a int", {"b": 1}, "no field b"),
        (datetime.date, NOW, "not a date"),
        (str, "a\ud800", "half a surrogate pair"),
        (float, 10**400, "does not fit into 64 bits"),
        ("float", 1e300, "does not fit into 32 bits"),
        (Decimal, Decimal("NaN"), "not a number"),
        (Decimal, Decimal("Infinity"), "does not fit"),
        (datetime.datetime, datetime.datetime.max.replace(tzinfo=WEST), "beyond the years 1 to 9999"),
        (Any, [float("nan")], "not anything that JSON can say"),
        (Any, object(), "not anything that JSON can say"),
    ],
)
def test_what_is_not_of_a_type_is_refused(type: Any, wrong: Any, why: str) -> None:
    with pytest.raises(TypeMismatch, match=why):
        type_of(type).dump(wrong)


@pytest.mark.parametrize("given", [int | str, complex, object(), "no such type", "a b c", "array<int", [], 3])
def test_what_is_no_type_is_refused(given: Any) -> None:
    with pytest.raises(TypeMismatch):
        type_of(given)


def test_the_field_is_named_that_has_no_type() -> None:
    @dataclass
    class Holder:
        it: complex

    with pytest.raises(TypeMismatch, match=r"Holder\.it: complex"):
        type_of(Holder)


def test_rows_have_attributes() -> None:
    row = type_of("name string, age int").load(("ann", None))
    assert (row.name, row.age, row["name"], dict(row)) == ("ann", None, "ann", {"name": "ann", "age": None})
    assert isinstance(row, Row)
    with pytest.raises(AttributeError, match="there is no field size; there are name, age"):
        _ = row.size
    assert type_of("name string, age int").dump({"name": "bob"}) == ("bob", None)


def test_windowed_keys() -> None:
    key = WindowedKey(Text(), size_ms=10)
    assert key.load({"key": "a", "start": 0, "end": 10}) == Windowed("a", Window(0, 10))
    assert key.dump(key.load(("a", 0, 10))) == ("a", 0, 10)


@pytest.mark.parametrize(
    ("given", "format"),
    [
        (str, "string"),
        (bytes, "bytes"),
        (int, "long"),
        (float, "double"),
        (bool, "boolean"),
        ("int", "integer"),
        ("smallint", "short"),
        ("float", "float"),
        (Order, "json"),
        (list[int], "json"),
        (Any, "json"),
        (Colour, "json"),
        (int | None, "long"),
        (WindowedKey(Text()), "windowed"),
    ],
)
def test_the_format_of_a_type(given: Any, format: str) -> None:
    assert serde(given).format == format


def test_a_format_must_fit_its_type() -> None:
    assert serde(int, "json").format == "json"
    assert serde(int, "integer").type == Integer()
    assert serde(float, "float").type == Real()
    with pytest.raises(TypeMismatch, match="cannot be written as long"):
        serde(str, "long")
    with pytest.raises(TypeMismatch, match="no format 'avro'"):
        serde(str, "avro")


def test_short_floats_are_what_spark_keeps_of_them() -> None:
    short = type_of("float")
    assert short.dump(0.1) == 0.10000000149011612


def test_arguments_that_are_no_fields_are_refused() -> None:
    @dataclass
    class Odd:
        it: int
        other: InitVar[int] = 0

    with pytest.raises(TypeMismatch, match=r"Odd\.other is no field"):
        type_of(Odd)
