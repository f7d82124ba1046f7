"""Serdes in plain Python: bytes, there and back, and in words where they cannot be read."""

import datetime
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from ottla.streams.errors import TypeMismatch, Unreadable
from ottla.streams.types.codec import decoder, encoder
from ottla.streams.types.serde import serde
from ottla.streams.types.struct import Window, Windowed, WindowedKey
from ottla.streams.types.type import Integer, Text
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
