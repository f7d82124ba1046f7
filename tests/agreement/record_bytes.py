"""Records for the topics of a random program, as bytes, in the order in which all sides take them.

R1  Time goes on with each record, except for late ones and those of equal times, which stand behind a record of their
    own queue: so a record counts as late as the latest before it in its queue, and queues never share a time.
R2  Where there are late records and several topics, what does not come to every operator (no key, or unreadable) is
    left out: it would not move time there.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ottla.client.record import Record
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import serde
from tests.agreement import vocabulary
from tests.agreement.values import (
    BIG,
    DAYS,
    DECIMALS,
    Decimal,
    Made,
    Point,
    Status,
    decimals,
    parts,
    reals,
    texts,
    values,
    wholes,
)

KEYS = (
    "str",
    "int",
    "float",
    "Decimal",
    "bytes",
    "bool",
    "Point",
    "Part",
    "Status",
    "tuple[int, str]",
    "list[str]",
    "date",
    "Any",
)
VALUES = (
    "Value", "Value", "int", "str", "float", "Decimal", "bytes", "bool", "Part", "Made", "Point", "list[str]",
    "list[int]", "dict[str, int]", "tuple[int, str]", "Any",
)  # fmt: skip
# Expressions of a record's time, of those types that can have one.
TIMED = {"int": ("v",), "Value": ("v.more", "v.at")}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([1.0, 0.5, -0.0, 1e300])
    | st.sampled_from(["", "a", "é"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=2)
    ),
    max_leaves=3,
)
OF: dict[str, st.SearchStrategy[Any]] = {
    "str": texts, "int": wholes, "float": reals, "Decimal": decimals, "bytes": st.binary(max_size=4),
    "bool": st.booleans(), "Part": parts, "Point": st.builds(Point, wholes, wholes), "Status": st.sampled_from(Status),
    "Made": st.builds(Made, texts, wholes, reals, st.none() | texts), "tuple[int, str]": st.tuples(wholes, texts),
    "list[str]": st.lists(texts, max_size=2), "list[int]": st.lists(wholes, max_size=2),
    "dict[str, int]": st.dictionaries(texts, wholes, max_size=2), "date": st.sampled_from(DAYS),
    "Any": anything.filter(lambda given: given is not None), "Value": values,
}  # fmt: skip
# Of each type some that are nearly equal.
NEAR: dict[str, tuple[Any, ...]] = {
    "float": (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, 5e-324),
    "Decimal": (BIG, BIG + Decimal("1e-18"), Decimal(0), Decimal("1.50"), Decimal("1.5"), *DECIMALS[:3]),
    "int": (0, 1, -1, 2**63 - 1, -(2**63)),
    "Any": (1, 1.0, True, "1", {"a": 1}, {"a": 1.0}, [1]),
    "str": ("", "a", "b", " ", "\x00", "é", "e\u0301"),
}
TOPIC_VALUES = 6
GARBAGE = (
    b"",
    b"{",
    b"null",
    b"[1]",
    b'{"a":1}',
    b"\xff\xfe",
    b"x" * 9,
    b"12345678",
    b'"NaN"',
    b"5",
    b'{"n":null}',
)


def type_named(name: str) -> Any:
    """The type that is written so in a program."""
    return eval(name, {each: getattr(vocabulary, each) for each in vocabulary.__all__})


def odd_or_any(type: str) -> st.SearchStrategy[Any]:
    near = NEAR.get(type)
    return OF[type] if near is None else st.sampled_from(near) | OF[type]


def records_of(
    draw: Callable[[st.SearchStrategy[Any]], Any], writer: Any, *, with_unreadable: bool
) -> list[Record]:
    """Records for all topics of a program."""
    pools = {}
    pick = writer.pick
    for topic in writer.topics:
        keys = [draw(odd_or_any(topic.key)) for _ in range(3)]
        pools[topic.name] = (
            [encoded(topic.key, each) for each in keys],
            # A few values, drawn once: those of many fields take their time.
            [draw(odd_or_any(topic.value)) for _ in range(TOPIC_VALUES)],
        )
    with_nulls = not (writer.late and len(writer.topics) > 1)
    queues = [(topic, n) for topic in writer.topics for n in range(topic.partitions)]
    offsets = dict.fromkeys(((topic.name, n) for topic, n in queues), 0)
    made: list[Record] = []
    now, last = draw(st.integers(0, 5)), None
    for _ in range(draw(st.integers(3, 24))):
        is_late = writer.late and last is not None and writer.chance(35)
        if is_late:
            topic, number = last
            time = max(0, now - pick(0, 0, 1, 3, 9, 30))
        else:
            topic, number = last = pick(*queues)
            now += pick(1, 1, 2, 4, 9, 60)
            time = now
        keys, some = pools[topic.name]
        key = None if with_nulls and not topic.is_global and writer.chance(4) else pick(*keys)
        value: bytes | None = None
        if not writer.chance(8) or topic.timed:
            value = spelled(
                topic.value, encoded(topic.value, timed(topic, pick(*some), time)), pick, writer.chance
            )
        is_bad = with_unreadable and with_nulls and not topic.is_global and writer.chance(8)
        if is_bad:
            value = pick(*GARBAGE)
        headers = pick((), (), (("h", b"1"),), (("h", None), ("é", b"")))
        offset = offsets[topic.name, number]
        offsets[topic.name, number] += 1
        own = pick(0, 7, 1_700_000_000_000) if topic.timed and not is_bad else time
        made.append(Record(topic.name, number, offset, own, key, value, headers))
    return made


def encoded(type: str, given: Any) -> bytes:
    return encoder(serde(type_named(type)))(given)


def timed(topic: Any, value: Any, time: int) -> Any:
    """A value that says its time itself."""
    if not topic.timed:
        return value
    if topic.value == "int":
        return time
    from dataclasses import replace
    from datetime import UTC, datetime

    return replace(value, more=time, at=datetime.fromtimestamp(time / 1000, UTC))


OPTIONAL = {
    "Part": ("n",), "Point": ("y",), "Made": ("total", "note"), "Value": ("text", "note", "maybe", "flag", "real")
}  # fmt: skip


def spelled(type: str, data: bytes, pick: Callable[..., Any], chance: Callable[[int], bool]) -> bytes:
    """The same JSON object said otherwise: fields twice, fields that nobody knows, fields with a default left out."""
    if type not in OPTIONAL or not chance(25):
        return data
    # Numbers stay as they are spelled.
    members = json.loads(data, parse_float=lambda text: f"@@{text}@@")
    way = pick("left out", "twice", "unknown", "null")
    optional = OPTIONAL.get(type, ())
    if way == "left out" and optional:
        members.pop(pick(*optional))
    elif way == "null" and optional:
        members[pick(*optional)] = None
    elif way == "unknown" and type in OPTIONAL:
        members["nobody knows"] = [1, {"x": None}]
    elif way == "twice" and members:
        name = pick(*members)
        return data[:-1] + f", {json.dumps(name)} : {_written(members[name])}}}".encode()
    else:
        return data
    return _written(members, ascii=pick(True, False)).encode()


def _written(given: Any, ascii: bool = True) -> str:
    return re.sub(r'"@@(.*?)@@"', r"\1", json.dumps(given, ensure_ascii=ascii))
