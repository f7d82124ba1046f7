"""Serdes in plain Python: bytes, there and back, and in words where they cannot be read."""

import datetime
import json
import math
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from ottla.streams.errors import TypeMismatch, Unreadable
from ottla.streams.types.build import type_of
from ottla.streams.types.codec import decoder, encoder, plain_decoder
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.struct import Window, Windowed, WindowedKey
from ottla.streams.types.type import Integer, Text
from ottla.streams.types.walk import as_key
from tests.unit.streams.test_types import ORDER, Colour, Item, Order


@pytest.mark.parametrize(
    ("given", "format", "value", "data"),
    [
        (str, None, "żółw", "żółw".encode()),
        (bytes, None, b"\x00", b"\x00"),
        (int, None, -2, b"\xff" * 7 + b"\xfe"),
        (int, "integer", 258, b"\x00\x00\x01\x02"),
        (int, "short", -1, b"\xff\xff"),
        (float, None, 1.5, b"\x3f\xf8" + bytes(6)),
        (bool, None, True, b"\x01"),
        (int, "json", 42, b"42"),
        (str, "json", "a", b'"a"'),
        (list[int], None, [1, 2], b"[1,2]"),
        (dict[str, float], None, {"a": 1.5}, b'{"a":1.5}'),
        (Item, None, Item("x", 3), b'{"sku":"x","count":3}'),
        (Colour, None, Colour.RED, b'"red"'),
        (Decimal, None, Decimal("1.25"), b"1.250000000000000000"),
        (Any, None, {"b": [1, {"a": None}]}, b'{"b":[1,{"a":null}]}'),
        (WindowedKey(Text(), size_ms=5), None, Windowed("k", Window(1, 6)), b"k" + bytes(7) + b"\x01"),
        (
            WindowedKey(Integer(), session=True),
            None,
            Windowed(2, Window(1, 3)),
            bytes(7) + b"\x02" + bytes(7) + b"\x03" + bytes(7) + b"\x01",
        ),
    ],
)
def test_the_bytes_of_a_value(given: Any, format: str | None, value: Any, data: bytes) -> None:
    form = serde(given, format)
    assert encoder(form)(value) == data
    assert decoder(form)(data) == value


def test_everything_that_a_dataclass_can_hold_comes_back() -> None:
    form = serde(Order)
    data = encoder(form)(ORDER)
    assert decoder(form)(data) == ORDER
    said = json.loads(data)
    assert said["at"] == "2024-02-03T04:05:06.789000Z"
    assert said["raw"] == "AP8=" and said["note"] is None and said["level"] == "HIGH"


def test_what_is_not_there_has_its_default() -> None:
    assert decoder(serde(Item))(b'{"sku":"a"}') == Item("a", 1)


@dataclass
class Strict:
    at: datetime.datetime
    items: list[Item]
    colour: Colour


@pytest.mark.parametrize(
    ("given", "data", "why"),
    [
        (str, b"\xff", "1 bytes are no string"),
        (int, b"123", "3 bytes are no long"),
        (bool, b"\x02", "no boolean"),
        (Item, b"{", "it is not JSON"),
        (Item, b"[]", "it is not an object"),
        (Item, b"{}", "sku is missing"),
        (Item, b'{"sku":"a","count":"1"}', "count: '1' is a str, not an int"),
        (Strict, b'{"at":"yesterday","items":[],"colour":"red"}', "at: 'yesterday' is no timestamp"),
        (Strict, b'{"at":0,"items":[{"sku":"a"},{}],"colour":"red"}', r"items\[1\]\.sku is missing"),
        (Strict, b'{"at":0,"items":[],"colour":"pink"}', "colour is 'pink', which is none of red, blue"),
        (list[int], b"[1,null]", r"\[1\] is missing"),
        (WindowedKey(Text()), b"abc", "no key of a window"),
    ],
)
def test_bytes_that_say_something_else(given: Any, data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        decoder(serde(given))(data)


def test_what_does_not_fit_is_not_written() -> None:
    with pytest.raises(TypeMismatch, match="cannot be written as short"):
        encoder(serde(int, "short"))(70_000)
    with pytest.raises(TypeMismatch, match="JSON has names"):
        encoder(serde(dict[int, int]))({1: 2})


@dataclass
class Defaults:
    a: int | None = 5
    b: int = 6
    c: Any = field(default_factory=lambda: str(uuid.uuid4()))


def test_a_null_is_no_missing_field() -> None:
    form = serde(Defaults)
    assert decoder(form)(b"{}").a == 5 and decoder(form)(b"{}").b == 6
    assert decoder(form)(b'{"a":null}').a is None
    assert decoder(form)(encoder(form)(Defaults(None, 7, "x"))) == Defaults(None, 7, "x")


def test_a_default_that_is_made_is_made_for_each() -> None:
    decode = decoder(serde(Defaults))
    assert decode(b"{}").c != decode(b"{}").c


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"), (-0.0, "-0.0"), (1e7, "1.0E7"), (9999999.5, "9999999.5"), (0.001, "0.001"), (0.0001, "1.0E-4"),
        (1e300, "1.0E300"), (5e-324, "4.9E-324"), (1 / 3, "0.3333333333333333"), (123456.789, "123456.789"),
        (math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (2.0**62, "4.611686018427388E18"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_java_writes_them(number: float, text: str) -> None:
    form = serde(float, "json")
    data = encoder(form)(number)
    assert data.decode() == text
    assert repr(decoder(form)(data)) == repr(number)


def test_what_others_write_for_no_number() -> None:
    assert math.isnan(decoder(serde(list[float]))(b"[NaN]")[0])
    with pytest.raises(Unreadable):
        decoder(serde(int, "json"))(b"NaN")
    with pytest.raises(Unreadable, match="Out of range"):
        decoder(serde(Any))(b"[NaN]")


def test_decimals_and_texts_are_written_as_spark_writes_them() -> None:
    assert encoder(serde(Decimal))(Decimal("1e-18")) == b"1E-18"
    assert encoder(serde(str, "json"))("\x1f\\u001f\x7f\u2028") == '"\\u001F\\\\u001f\x7f\u2028"'.encode()
    first = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
    assert encoder(serde(datetime.datetime))(first) == b'"0001-01-01T00:00:00.000000Z"'


def test_equal_keys_are_written_alike() -> None:
    key = as_key(type_of(Any))
    form = Serde(key, "json")
    spelled = [b'{"b":1.0,"a":[1e2,-0.0]}', b' {"a": [100, 0],"b":1}', b'{"b":10e-1,"a":[100.0,0.0]}']
    assert {plain_decoder(form)(each) for each in spelled} == {'{"a":[100,0],"b":1}'}
    assert plain_decoder(serde(Any))(b'{"b": 1.0}') == '{"b":1.0}'


def test_nothing_inside_of_anything() -> None:
    @dataclass
    class Holder:
        it: Any = None

    form = serde(Holder)
    assert encoder(form)(Holder()) == b'{"it":null}'
    assert decoder(form)(b'{"it":null}') == decoder(form)(b"{}") == Holder()
    assert decoder(serde(list[Any]))(encoder(serde(list[Any]))([None, "None", 1])) == [None, "None", 1]


@pytest.mark.parametrize("data", [b"5", b"true", b"{}", b"[1]", b'"\\ud800"'])
def test_nothing_else_is_text(data: bytes) -> None:
    with pytest.raises(Unreadable):
        decoder(serde(str, "json"))(data)


def test_sets_and_tuples_come_back_as_such() -> None:
    sets, tuples = serde(set[str]), serde(tuple[int, ...])
    assert encoder(sets)({"b", "a"}) == b'["a","b"]'
    assert decoder(sets)(b'["b","a","b"]') == {"a", "b"}
    assert decoder(tuples)(encoder(tuples)((1, 2))) == (1, 2)
