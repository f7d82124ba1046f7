"""What a user's function is called with, and what is known of its result."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams.app import App
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


def test_why_a_function_is_called_is_kept() -> None:
    found = function(lambda v: v * v * v, OFFERED, "map")
    assert found.expression is None and found.result == Integer()
    assert found.called_because == "its whole numbers may have more than 38 digits"
    assert function(lambda v: v + 1, OFFERED, "map").called_because is None
    assert action(print, OFFERED, "peek").called_because is None
    branching = function(lambda v: v if v else 0, OFFERED, "map", Integer())
    assert branching.called_because == "it has an if, an and or an or"


def test_what_a_function_uses_it_has_when_the_plan_is_made() -> None:
    """A loop's variable has the loop's last value then, in Python and so here."""
    found = [function(lambda v: v > limit, OFFERED, "filter") for limit in (1, 2, 3)]  # noqa: B023
    read = [each.read_again().expression for each in found]
    assert read[0] == read[1] == read[2] == found[2].expression != found[0].expression
    assert found[2].read_again() is found[2]


def test_a_plan_has_its_functions_as_they_read_when_it_is_made() -> None:
    limit: Any = 1
    app = App("app")
    app.stream("a", value=int).filter(lambda v: v > limit).map_values(lambda v: v + 1).to("b")
    before = app.plan()
    assert app.plan().nodes == before.nodes
    limit = 5
    after = app.plan()
    source, kept, mapped, sink = after.nodes
    assert kept.inputs == (source,) and mapped.inputs == (kept,) and sink.inputs == (mapped,)
    assert "value=5" in repr(kept.predicate.expression)  # type: ignore[attr-defined]
    limit = object()
    (_, kept, *_) = app.plan().nodes
    assert kept.predicate.expression is None  # type: ignore[attr-defined]
    assert "it uses a object from outside" in kept.predicate.called_because  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda v: v, "decimal(38,18)"),
        (lambda v: v, Any),
        (lambda v: [v, v], tuple[int, int]),
        (lambda v: (v, v), list[int]),
    ],
)
def test_what_may_be_taken_for_another_type_is_called(call: Any, wanted: Any) -> None:
    assert function(call, OFFERED, "map", type_of(wanted)).called_because is not None
