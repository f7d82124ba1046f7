"""Calling the user's functions: what they get is loaded, what they return is checked and dumped.

A function is always called, also where Spark would compute it. What it raises, and what it returns that is not of its
type, is a FunctionFailed that names the operator and the function.
"""

import traceback
from collections.abc import Callable
from typing import Any

from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.plan.function import Function
from ottla.streams.types.type import Type


class Loaded:
    """Something that is as the user's functions have it already: what an initializer has returned."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Called:
    """A user's function. It is called with everything that its operator offers, plain; `offered` are the types."""

    def __init__(self, function: Function, operator: str, **offered: Type) -> None:
        names = tuple(offered)
        self._wanted = [(names.index(each), offered[each]) for each in function.parameters]
        self._call = function.call
        self._result = function.result
        self._operator = operator
        self.place = function.place

    def __call__(self, *given: Any) -> Any:
        """Return what the function returns, plain."""
        return self.dumped(self._result, self.raw(*given))

    def raw(self, *given: Any) -> Any:
        """Return what the function returns, as it is."""
        return self.guarded(self._call, *(loaded(of, given[at]) for at, of in self._wanted))

    def guarded(self, call: Callable[..., Any], *given: Any) -> Any:
        """Call something of the user's."""
        return guarded(self._operator, self.place, call, *given)

    def dumped(self, type: Type, found: Any) -> Any:
        """Return something that the function returned, plain."""
        if found is None:
            return None
        try:
            return type.dump(found)
        except TypeMismatch as error:
            raise self.failed(f"returned the wrong thing: {error.args[0]}") from None

    def failed(self, reason: str) -> FunctionFailed:
        """Return the failure of the function for a reason."""
        return FunctionFailed(self._operator, self.place, reason)

    def holds(self, *given: Any) -> bool:
        """Return what a predicate returns."""
        found = self.raw(*given)
        if found is True or found is False:
            return found
        if type(found).__module__ == "numpy" and type(found).__name__ in ("bool", "bool_"):
            return bool(found)
        raise self.failed(f"a predicate returned {found!r:.100}, which is neither True nor False")

    def pair(self, found: Any) -> tuple[Any, Any]:
        """Return what a mapper returned as a key and a value."""
        if isinstance(found, tuple | list) and len(found) == 2:
            return found[0], found[1]
        raise self.failed(f"returned {found!r:.100}, which is not a pair of key and value")


def loaded(type: Type, given: Any) -> Any:
    """Return what a user's function sees of something plain."""
    if isinstance(given, Loaded):
        return given.value
    return None if given is None else type.load(given)


def guarded(operator: str, place: str, call: Callable[..., Any], *given: Any) -> Any:
    """Call something of the user's; what it raises is a FunctionFailed with the line of the user's own."""
    try:
        return call(*given)
    except FunctionFailed:
        raise
    except Exception as error:
        said = str(error)
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise FunctionFailed(operator, place, reason, _line(error)) from error


def _line(error: Exception) -> str:
    from ottla.spark.line import lines, own

    found = own(lines("".join(traceback.format_tb(error.__traceback__))))
    return "" if found is None else str(found)
