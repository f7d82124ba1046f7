"""What a user's function is called with, and what is known of its result."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import action, function, place_of, predicate
from ottla.streams.types.build import type_of
from ottla.streams.types.type import Boolean, Integer, Real, Text

OFFERED = {"key": Text(), "value": Integer()}


@dataclass
class Made:
    n: int


def words(key: str, value: int) -> list[str]:
    return [key] * value


def numbers(value: int) -> Iterator[tuple[str, int]]:
    yield "a", value


def test_fewer_arguments_are_the_last_ones() -> None:
    assert function(lambda v: v, OFFERED, "map").parameters == ("value",)
    assert function(lambda k, v: k, OFFERED, "map").parameters == ("key", "value")
    assert function(lambda v, limit=1: v, OFFERED, "map").parameters == ("value",)
    assert action(print, OFFERED, "peek").parameters == ("key", "value")
    assert function(int, OFFERED, "map").parameters == ("value",)


def test_bound_passes_on_what_is_wanted() -> None:
    three = {"key": Text(), "value": Integer(), "aggregate": Integer()}
    found = function(lambda v, a: v - a, three, "aggregate", Integer())
    assert found.bound(("key", "value", "aggregate"))("k", 5, 3) == 2
    assert function(lambda v: v, OFFERED, "x").bound(("key", "value"))("k", 5) == 5


@pytest.mark.parametrize(
    ("call", "told", "many", "result"),
    [
        (lambda v: v + 1, None, False, Integer()),
        (lambda v: v + 1, Real(), False, Real()),
        (words, None, True, Text()),
        (numbers, None, True, type_of(tuple[str, int])),
        (str, None, False, Text()),
        (Made, None, False, type_of(Made)),
        (len, None, False, Integer()),
        (lambda v: [str(v)], None, True, Text()),
        (lambda v: [v for _ in range(v)], Integer(), True, Integer()),
    ],
)
def test_the_result_is_what_is_said_or_seen(call: Any, told: Any, many: bool, result: Any) -> None:
    assert function(call, OFFERED, "map", told, many=many).result == result


def test_a_result_that_nobody_knows_is_refused() -> None:
    with pytest.raises(
        TopologyError, match=r"map_values: nothing says what the function at .*test_functions.py:\d+"
    ):
        function(lambda v: max(v, 1), OFFERED, "map_values")


def test_a_result_of_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="returns bigint, not string"):
        function(lambda v: v + 1, OFFERED, "map_values", Text())
    with pytest.raises(TypeMismatch, match="returns bigint, not boolean"):
        predicate(lambda v: v + 1, OFFERED, "filter")


def test_numbers_are_widened_by_spark_and_narrowed_by_python() -> None:
    assert function(lambda v: v, OFFERED, "map", Real()).expression is not None
    assert function(lambda v: v, OFFERED, "map", Integer(32)).expression is None


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TopologyError, match="filter takes a function, and was given 3"):
        predicate(3, OFFERED, "filter")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="wants 3 arguments and gets key and value"):
        predicate(lambda a, b, c: True, OFFERED, "filter")
    with pytest.raises(TopologyError, match="wants no arguments"):
        predicate(lambda: True, OFFERED, "filter")


def test_places() -> None:
    assert place_of(words) == f"{place_of(lambda: 0).rpartition(':')[0]}:{words.__code__.co_firstlineno}"
    assert place_of(functools.partial(words, "a")) == place_of(words)
    assert place_of(str.lower) == "str.lower"
    assert predicate(lambda v: v > 1, OFFERED, "filter").result == Boolean()
