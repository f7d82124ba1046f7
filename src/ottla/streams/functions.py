"""What a user gave as a function becomes a Function: what to call it with, what it returns, whether Spark can compute
it.

Each operator offers its functions some things, in an order, the key first. A function of fewer arguments gets the last
ones: a mapper of one argument gets the value, an adder of two gets value and aggregate.

The type of what it returns is, in this order: what the operator was told (`value=int`), what the function says of
itself (`-> int`, or a class that is called), what its expression comes to. A function of which nothing of this is
known is refused when the topology is built, rather than guessed at when it runs.
"""

import collections.abc
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.expression.code import Unreadable
from ottla.streams.expression.tracing import read
from ottla.streams.expression.tree import Call
from ottla.streams.plan.function import Function, Reading
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import Anything, Pair, Struct, WindowedKey, bare
from ottla.streams.types.type import Array, Boolean, Exact, Integer, Real, Type

_MANY = (
    list,
    set,
    tuple,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Sequence,
    collections.abc.Generator,
    collections.abc.Collection,
)


def function(
    call: Callable[..., Any],
    offered: Mapping[str, Type],
    what: str,
    result: Type | None = None,
    *,
    many: bool = False,
    traced: bool = True,
) -> Function:
    """Return a user's function as an operator wants it; `what` is how errors call it.

    `result` is the type it must return, where that is known; with `many`, of each of the things it returns.
    """
    if not callable(call):
        raise TopologyError(f"{what} takes a function, and was given {call!r:.100}")
    names = tuple(offered)
    taken = _taken(call, names, what)
    place = place_of(call)
    known = {name: offered[name] for name in taken}
    reading, seen = _reading(call, known, many) if traced else (Reading(None), None)
    if result is None:
        result = _told(call, many) or seen
    if result is None:
        raise TopologyError(
            f"{what}: nothing says what the function at {place} returns",
            hint="give the type, as in value=int or key=str, or say it in the function: def f(...) -> int",
        )
    if not traced:
        return Function(call, taken, result, place)
    if reading.expression is not None and seen is not None and _is_another(seen, result):
        raise TypeMismatch(f"{what}: the function at {place} returns {seen}, not {result}")
    again = partial(_fitted_reading, call, known, many, result)
    return Function(call, taken, result, place, *_fitted(reading, result, many), again)


def _fitted_reading(call: Callable[..., Any], known: dict[str, Type], many: bool, result: Type) -> Reading:
    """What a function reads as now, where its type is settled."""
    return _fitted(_reading(call, known, many)[0], result, many)


def _reading(call: Callable[..., Any], known: dict[str, Type], many: bool) -> tuple[Reading, Type | None]:
    """What a function reads as, and the type of what it returns or, with `many`, of each of that."""
    try:
        found = read(call, known)
    except Unreadable as reason:
        return Reading(None, str(reason)), _element(reason.type, many)
    seen = _element(found.type, many)
    if many and not isinstance(found.type, Array):
        return Reading(None, f"it returns {found.type}, which is gone through one by one"), None
    if many and isinstance(found.type, Array) and found.type.is_set:
        return Reading(None, "it returns a set, whose order is Python's"), seen
    if many and isinstance(seen, Pair) and isinstance(found.type, Array) and found.type.of != seen:
        return Reading(None, "some of its pairs may be None"), seen
    return Reading(found), seen


def predicate(call: Callable[..., Any], offered: Mapping[str, Type], what: str) -> Function:
    """Return a user's function that is true or false."""
    return function(call, offered, what, Boolean())


def action(call: Callable[..., Any], offered: Mapping[str, Type], what: str) -> Function:
    """Return a user's function whose result is nobody's business."""
    return function(call, offered, what, Boolean(), traced=False)


def _element(found: Type | None, many: bool) -> Type | None:
    if many:
        found = found.of if isinstance(found, Array) else None
    return None if found is None else bare(found)


def _fitted(reading: Reading, wanted: Type, many: bool) -> Reading:
    """The reading, if its expression is of the type that is wanted or can be made so without loss."""
    expression = reading.expression
    if expression is None:
        return reading
    found = _element(expression.type, many)
    if found == wanted:
        return reading
    if wanted == Real() and isinstance(found, Real | Integer) and not many:
        return Reading(Call(wanted, "widen", (expression,)))
    return Reading(None, f"whether {found} is {wanted} is seen when there is a value")


# What is not of a type, but may be taken for it: a whole number for a Decimal, a NamedTuple for a tuple.
_TAKEN_FOR: tuple[tuple[tuple[type[Type], ...], tuple[type[Type], ...]], ...] = (
    ((Integer,), (Real, Exact)),
    ((Pair, Array, Struct), (Pair, Array, WindowedKey)),
)


def _is_another(found: Type, wanted: Type) -> bool:
    """Whether no value of one type is ever taken for one of the other."""
    if type(wanted) is type(found) or isinstance(wanted, Anything):
        return False
    return not any(isinstance(found, one) and isinstance(wanted, other) for one, other in _TAKEN_FOR)


def _taken(call: Callable[..., Any], names: tuple[str, ...], what: str) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # written in C, and silent about itself
        return names[-1:]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return names
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in places if each.default is each.empty]
    keywords = [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if len(needed) > len(names) or keywords or (names and not places):
        raise TopologyError(
            f"{what}: the function at {place_of(call)} wants {len(needed) or 'no'} arguments and gets "
            f"{' and '.join(names) or 'none'}"
        )
    # A class with a default for its only argument is still called with something.
    count = len(needed) or min(1, len(names))
    return names[len(names) - count :]


def _told(call: Callable[..., Any], many: bool) -> Type | None:
    if isinstance(call, type):
        return None if many else type_of(call)
    if call is len:
        return Integer()
    try:
        found = typing.get_type_hints(call).get("return")
    except (TypeError, NameError, AttributeError):
        return None
    if found is None or found is type(None):
        return None
    if many:
        arguments = typing.get_args(found)
        if typing.get_origin(found) not in _MANY or not arguments:
            return None
        found = arguments[0]
    return bare(type_of(found))


def place_of(call: Any) -> str:
    """Return where a function stands, as file:line."""
    found = inspect.unwrap(call) if callable(call) else call
    found = getattr(found, "func", found)  # functools.partial
    code = getattr(found, "__code__", None)
    if code is None and isinstance(found, type):
        try:
            return f"{_short(inspect.getsourcefile(found) or '?')}:{inspect.getsourcelines(found)[1]}"
        except (OSError, TypeError):
            return getattr(found, "__qualname__", repr(found))
    if code is None:
        return str(getattr(found, "__qualname__", None) or repr(found))
    return f"{_short(code.co_filename)}:{code.co_firstlineno}"


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
