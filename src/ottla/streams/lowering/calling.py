"""Calling the user's functions, wherever they run: what they raise names the operator, their line and the record.

add = caller(node.adder, ("key", "value", "aggregate"), node.name)
try:
    total = add(key, value, total)
except FunctionFailed as failed:
    raise failed.located(topic, partition, offset) from failed.__cause__
"""

import traceback
from collections.abc import Callable
from typing import Any

from ottla.spark.line import lines, own
from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.plan.function import Function
from ottla.streams.types.type import Type


def caller(function: Function, offered: tuple[str, ...], operator: str) -> Callable[..., Any]:
    """Return a function of exactly what is offered, in that order; what goes wrong in it raises FunctionFailed."""
    call, place = function.bound(offered), function.place

    def called(*given: Any) -> Any:
        try:
            return call(*given)
        except FunctionFailed:
            raise
        except Exception as error:
            raise FunctionFailed(operator, place, _reason(error), _line(error)) from error

    return called


def dumper(type: Type, operator: str, place: str) -> Callable[[Any], Any]:
    """Return a function from what a user's function returned to what Spark takes, where None is null.

    What is not of the type raises FunctionFailed.
    """
    dump = type.dump

    def dumped(given: Any) -> Any:
        if given is None:
            return None
        try:
            return dump(given)
        except TypeMismatch as error:
            raise FunctionFailed(operator, place, f"returned the wrong thing: {error.args[0]}") from None

    return dumped


def loader(type: Type) -> Callable[[Any], Any]:
    """Return a function from what Spark hands out to what a user's function sees, where null is None.

    A class of the user's that refuses what it is made of raises FunctionFailed, too.
    """
    load = type.load
    if type.plain:
        return lambda given: given

    def loaded(given: Any) -> Any:
        if given is None:
            return None
        try:
            return load(given)
        except Exception as error:
            raise FunctionFailed(str(type), "when one is made", _reason(error), _line(error)) from error

    return loaded


def _line(error: Exception) -> str:
    """The innermost line of the user's own, as Python prints it."""
    found = own(lines("".join(traceback.format_tb(error.__traceback__))))
    return "" if found is None else str(found)


def _reason(error: Exception) -> str:
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
