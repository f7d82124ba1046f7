"""Getting the user's functions and classes to wherever they are called.

What a program has written travels whole: the processes that call it need not find its modules. What is installed, there
and here alike, travels by name.
"""

import inspect
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from ottla.streams.plan.function import Function
from ottla.streams.plan.process import Process
from ottla.streams.plan.topology import Plan
from ottla.streams.types.type import Type

_INSTALLED = tuple(
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_OURS = Path(__file__).resolve().parents[2]


def ship(plan: Plan) -> None:
    """Have everything that the user's own modules define, and this plan uses, travel whole."""
    for thing in _things(plan):
        module = inspect.getmodule(thing)
        if module is not None and is_own(module):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def is_own(module: ModuleType) -> bool:
    """Say whether a module is the user's own, and not installed."""
    if module.__name__ == "__main__" or module.__name__ not in sys.modules:
        return False  # these travel whole anyway
    path = getattr(module, "__file__", None)
    if path is None:
        return module.__spec__ is None  # made by a program; what is built in has one
    found = Path(path).resolve()
    if found.is_relative_to(_OURS):
        return "examples" in found.relative_to(_OURS).parts
    return not any(found.is_relative_to(each) for each in _INSTALLED)


def _things(plan: Plan) -> Iterator[Any]:
    for node in plan.nodes:
        if isinstance(node, Process):
            yield node.processor
        for each in fields(node):
            if each.name != "inputs":
                yield from _inside(getattr(node, each.name))


def _inside(given: Any) -> Iterator[Any]:
    if isinstance(given, Function):
        yield inspect.unwrap(given.call)
        yield from _inside(given.result)
    elif isinstance(given, tuple):
        for each in given:
            yield from _inside(each)
    elif isinstance(given, Type) or (is_dataclass(given) and not isinstance(given, type)):
        for each in fields(given):
            found = getattr(given, each.name)
            if isinstance(found, type):
                yield found
            else:
                yield from _inside(found)
