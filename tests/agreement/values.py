"""Types that random records are of, odd values of them, and when two values are the same."""

import datetime
import enum
import json
import math
import os
import random
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

# A run says it when it fails; with it in the environment the same is drawn again.
SEED = int(os.environ.get("AGREEMENT_SEED") or random.SystemRandom().randrange(1 << 32))
UTC = datetime.UTC


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"
    ODD = "5"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Part:
    sku: str
    n: int = 1


@dataclass
class Value:
    i: int
    j: int
    f: float
    g: float
    s: str
    t: str
    b: bool
    c: bool
    d: Decimal
    e: Decimal
    at: datetime.datetime
    until: datetime.datetime
    day: datetime.date
    raw: bytes
    status: Status
    level: Level
    part: Part
    parts: list[Part]
    point: Point
    names: list[str]
    tags: dict[str, int]
    pair: tuple[int, str]
    note: str | None = None
    maybe: int | None = None
    real: float | None = None
    flag: bool | None = None
    text: str = "none"
    more: int = 7


@dataclass
class Made:
    name: str
    n: int
    total: float = 0.5
    note: str | None = None


WHEN = datetime.datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=UTC)
OLD = datetime.datetime(1582, 10, 10, 23, 59, 59, 999999, tzinfo=UTC)
DAY = datetime.date(1500, 2, 28)
INF, NAN, BIG = math.inf, math.nan, Decimal("12345678901234567890.123456789012345678")
TINY = Decimal("0.0000000000000000001")
NAMES: dict[str, Any] = {
    "Made": Made,
    "Part": Part,
    "Point": Point,
    "Status": Status,
    "Level": Level,
    "WHEN": WHEN,
    "OLD": OLD,
    "DAY": DAY,
}
NAMES |= {"INF": INF, "NAN": NAN, "BIG": BIG, "TINY": TINY}

WHOLE = [
    0,
    1,
    -1,
    2,
    7,
    -7,
    10,
    100,
    2**31,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
]
REALS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    0.1,
    1e-300,
    1e300,
    5e-324,
    2.0**53,
    2.0**63,
    -(2.0**63),
    9007199254740992.0,
]
REALS += [INF, -INF, NAN, 1e16, 123456.789]
TEXTS = [
    "", "a", "b", "A,b,,C,", " \t\n\x1c\x1f\x85\xa0\u2003\u3000x y \u200b",
    "İstanbul ß ΑΣ ΑΣ. Σ ʰΣ", "a.b|c\\E$^", "\n",
    "ŉǰΐﬁﬃ Straße", "\x00", "😀𐐀𐐨é\u0301", "\uffff", "\U00010000", "5", "-7", "true", "null", "NaN",
    "{}", "[1]", '"q"',
    "\\ud800", "İ", "ς", "Dž dž ǅ", "ᾳ ᾼ ΰ", "x" * 50,
]  # fmt: skip
DECIMALS = [
    Decimal(0),
    Decimal(1),
    Decimal("-1.50"),
    Decimal("0.000000000000000001"),
    BIG,
    -BIG,
    BIG + Decimal("1e-18"),
]
DECIMALS += [Decimal("99999999999999999999.999999999999999999"), Decimal("1E-10"), Decimal(7)]
TIMES = [
    WHEN, OLD, datetime.datetime(1, 1, 1, tzinfo=UTC), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime.datetime(1970, 1, 1, tzinfo=UTC),
    datetime.datetime(2024, 3, 31, 2, 30, tzinfo=UTC), datetime.datetime(1900, 2, 28, 0, 0, 0, 1, tzinfo=UTC),
]  # fmt: skip
DAYS = [
    DAY,
    datetime.date(1, 1, 1),
    datetime.date(9999, 12, 31),
    datetime.date(1970, 1, 1),
    datetime.date(1582, 10, 10),
]

wholes = st.sampled_from(WHOLE) | st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
reals = st.sampled_from(REALS) | st.floats() | st.integers(-9, 9).map(float)
texts = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=12)
decimals = st.sampled_from(DECIMALS) | st.integers(-(10**20), 10**20).map(lambda n: Decimal(n) / 8)
parts = st.builds(Part, texts, wholes)
values = st.builds(
    Value,
    i=wholes, j=wholes, f=reals, g=reals, s=texts, t=texts, b=st.booleans(), c=st.booleans(), d=decimals, e=decimals,
    at=st.sampled_from(TIMES), until=st.sampled_from(TIMES), day=st.sampled_from(DAYS), raw=st.binary(max_size=5),
    status=st.sampled_from(Status), level=st.sampled_from(Level), part=parts, parts=st.lists(parts, max_size=2),
    point=st.builds(Point, wholes, wholes), names=st.lists(texts, max_size=3),
    tags=st.dictionaries(texts, wholes, max_size=2), pair=st.tuples(wholes, texts), note=st.none() | texts,
    maybe=st.none() | wholes, real=st.none() | reals, flag=st.none() | st.booleans(), text=texts, more=wholes,
)  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal, and of one kind; a NaN is a NaN, and zero has a sign."""
    if isinstance(one, float) and isinstance(other, float):
        if one != one or other != other:
            return one != one and other != other
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def same_json(one: bytes | None, other: bytes | None) -> bool:
    """The same, but for floats: Java before 19, who wrote `one`, sometimes writes a digit too many, or another last
    one.
    """
    if one == other or one is None or other is None:
        return one == other
    try:
        first, second = (json.loads(each, object_pairs_hook=tuple) for each in (one, other))
    except ValueError:
        return False
    return same(first, second) and len(one) >= len(other)
