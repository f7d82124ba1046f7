"""A function that Spark computes gives what Python would have given, to the last corner."""

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from ottla.streams.expression.tracing import trace
from ottla.streams.types.build import type_of


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"


@dataclass
class Part:
    sku: str
    n: int = 1


@dataclass
class Value:
    i: int
    f: float
    s: str
    b: bool
    status: Status
    at: datetime.datetime
    price: Decimal
    part: Part
    names: list[str]
    tags: dict[str, int]
    note: str | None = None
    maybe: float | None = None


@dataclass
class Made:
    name: str
    total: float
    note: str | None = None
    n: int = 7


UTC = datetime.UTC
PRICE = Decimal("1.75")
NOW = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
INFINITE, NAN = float("inf"), float("nan")
SPACES = " \t\n\x1c\x1f\x85\xa0\u2003\u3000"
TEXTS = [
    "",
    "a",
    "Äpfel und Birnen",
    f"{SPACES}x {SPACES} y{SPACES}",
    "a,b,,c,",
    "İstanbul ß ΑΣ",
    "a.b|c\\E$^",
    "\n",
]


def value(n: int, text: str, real: float) -> Value:
    return Value(
        i=n,
        f=real,
        s=text,
        b=n % 2 == 0,
        status=Status.PAID if n % 3 else Status.NEW,
        at=NOW + datetime.timedelta(microseconds=n),
        price=Decimal(n) / 4,
        part=Part(text[:2], -n),
        names=text.split(","),
        tags={text: n} if text else {},
        note=text or None,
        maybe=None if real != real else real,
    )


VALUES = [
    value(n, text, real)
    for n, real in zip(
        (0, 1, -1, 7, -7, 2**53, 10, 3), (0.0, -0.0, 1.5, -2.5, NAN, INFINITE, 1e300, 7.0), strict=True
    )
    for text in TEXTS
]

FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda v: v,
    lambda v: v.i + 1,
    lambda v: 3 - v.i,
    lambda v: v.i * v.f,
    lambda v: v.i / 3,
    lambda v: v.f / -2,
    lambda v: v.i // 3,
    lambda v: v.i // -3,
    lambda v: v.i % 3,
    lambda v: v.i % -3,
    lambda v: -v.f,
    lambda v: abs(v.i),
    lambda v: float(v.i),
    lambda v: str(v.i),
    lambda v: v.i > v.f,
    lambda v: v.f > 1,
    lambda v: v.f <= v.f,
    lambda v: v.f == v.f,
    lambda v: v.f != v.f,
    lambda v: v.f < v.i,
    lambda v: v.i == 7.0,
    lambda v: (v.i > 0) & (v.b == False),  # noqa: E712
    lambda v: v.b | (v.f >= 0),
    lambda v: v.status == Status.PAID,
    lambda v: v.status != Status.PAID,
    lambda v: v.at > NOW,
    lambda v: v.price > 1,
    lambda v: v.price == PRICE,
    lambda v: v.note == "a",
    lambda v: v.note != "a",
    lambda v: v.note == None,  # noqa: E711
    lambda v: v.note,
    lambda v: v.maybe != 1.5,
    lambda v: v.s.lower(),
    lambda v: v.s.upper(),
    lambda v: v.s.strip(),
    lambda v: v.s.lstrip(),
    lambda v: v.s.rstrip(),
    lambda v: v.s.split(),
    lambda v: v.s.split(","),
    lambda v: v.s.split("\\E"),
    lambda v: v.s.split("|"),
    lambda v: v.s.replace("b", "$1"),
    lambda v: v.s.replace(".", v.s),
    lambda v: v.s.startswith("a"),
    lambda v: v.s.endswith(v.s),
    lambda v: v.s + "-" + v.part.sku,
    lambda v: v.s[1:3],
    lambda v: v.s[2:],
    lambda v: v.s[:0],
    lambda v: v.s > "b",
    lambda v: len(v.s),
    lambda v: len(v.names) + len(v.tags),
    lambda v: (v.part.n, v.names),
    lambda v: [v.s, "x"],
    lambda v: Made(v.s, v.i, note=v.note),
    lambda v: (Made(v.s, 1), v.part),
]


def same(one: Any, other: Any) -> bool:
    """Equal, and NaN is NaN, and -0.0 is not 0.0 only where Python can tell."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    if isinstance(one, Value):
        return all(same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.fixture(scope="module")
def computed(spark: Any) -> Callable[[int], list[Any]]:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegerType, StructField, StructType

    from ottla.streams.lowering.columns import column
    from ottla.streams.lowering.datatypes import spark_type

    kind = type_of(Value)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema = StructType([StructField("n", IntegerType()), StructField("value", spark_type(kind))])
    frame = spark.createDataFrame([(n, kind.dump(each)) for n, each in enumerate(VALUES)], schema)
    expressions = [trace(each, {"value": kind}) for each in FUNCTIONS]
    columns = []
    for n, each in enumerate(expressions):
        assert each is not None, f"function {n} is not an expression"
        columns.append(column(each, {"value": F.col("value")}).cast(spark_type(each.type)).alias(f"f{n}"))
    rows = frame.select("n", *columns).orderBy("n").collect()
    results = []
    for n, each in enumerate(expressions):
        assert each is not None
        results.append([None if row[n + 1] is None else each.type.load(row[n + 1]) for row in rows])
    return results.__getitem__


@pytest.mark.parametrize("n", range(len(FUNCTIONS)))
def test_spark_computes_what_python_would(computed: Callable[[int], list[Any]], n: int) -> None:
    expression = trace(FUNCTIONS[n], {"value": type_of(Value)})
    assert expression is not None
    kind = expression.type
    for given, found in zip(VALUES, computed(n), strict=True):
        wanted = FUNCTIONS[n](given)
        if wanted is not None:
            wanted = kind.load(kind.dump(wanted))  # an int may stand for a float
        assert same(found, wanted), f"of {given}: {found!r}, not {wanted!r}"


def test_every_character_has_pythons_other_case(spark: Any) -> None:
    """Whatever Java's version of Unicode, and the language of the machine."""
    from pyspark.sql import functions as F  # noqa: N812

    from ottla.streams.lowering.casing import lower, upper

    codes = [each for each in range(0x110000) if not 0xD800 <= each < 0xE000]
    chunks = [codes[n : n + 4096] for n in range(0, len(codes), 4096)]
    texts = ["".join(map(chr, chunk)) for chunk in chunks]
    # What stands around a capital sigma decides what its small one is.
    texts += [
        "\n".join(f"A{chr(each)}ΣΣ{chr(each)}b Σ{chr(each)}" for each in chunk) for chunk in chunks[:32]
    ]
    frame = spark.createDataFrame([(n, each) for n, each in enumerate(texts)], "n int, text string")
    rows = frame.select("n", lower(F.col("text")).alias("low"), upper(F.col("text")).alias("up")).collect()
    for row in rows:
        for found, wanted in ((row.low, texts[row.n].lower()), (row.up, texts[row.n].upper())):
            wrong = [(one, other) for one, other in zip(found, wanted, strict=False) if one != other]
            assert found == wanted, f"text {row.n}: {wrong[:5]!r}"
