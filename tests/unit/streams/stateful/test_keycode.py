"""Keys as bytes: equal keys have equal ones, different keys different ones."""

import decimal
import math
from decimal import Decimal
from typing import Any

import pytest

from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.types.build import type_of
from ottla.streams.types.walk import as_key


@pytest.mark.parametrize(
    ("type", "one", "other", "equal"),
    [
        (
            Decimal,
            "12345678901234567890.123456789012345678",
            "12345678901234567890.123456789012345679",
            False,
        ),
        (
            Decimal,
            "99999999999999999999.999999999999999999",
            "99999999999999999999.999999999999999998",
            False,
        ),
        (Decimal, "1.50", "1.5", True),
        (Decimal, "-0.0", "0", True),
        (float, 0.0, -0.0, False),
        (dict[str, int], {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (float, math.nan, -math.nan, True),
        (Any, {"a": 1}, {"a": 1.0}, True),
        (Any, {"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        (Any, {"a": 1}, {"a": "1"}, False),
        (set[str], {"a", "b", "c"}, {"c", "b", "a"}, True),
    ],
)
def test_equal_keys_have_equal_bytes(type: Any, one: Any, other: Any, equal: bool) -> None:
    of = as_key(type_of(type))
    if type is Decimal:
        one, other = Decimal(one), Decimal(other)
    encode = key_code(of).encode
    with decimal.localcontext(decimal.Context(prec=3)):
        assert (encode(of.dump(one)) == encode(of.dump(other))) is equal
