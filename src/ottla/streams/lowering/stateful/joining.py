"""The user's joiner as the operators call it: plain values in, a plain value out."""

from collections.abc import Callable
from typing import Any, Protocol

from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.plan.function import Function
from ottla.streams.types.type import Type


class Joins(Protocol):
    """An operator with a joiner."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def key(self) -> Type:
        """The type of its keys."""

    @property
    def value(self) -> Type:
        """The type of what comes out."""

    @property
    def joiner(self) -> Function:
        """What the user gave."""


def joiner(node: Joins, left: Type, right: Type) -> Callable[[Any, Any, Any], Any]:
    """Return the joiner of an operator: (key, left, right), where either side may be None."""
    call = caller(node.joiner, ("key", "left", "right"), node.name)
    load_key, load_left, load_right = loader(node.key), loader(left), loader(right)
    dump = dumper(node.value, node.name, node.joiner.place)

    def join(key: Any, one: Any, other: Any) -> Any:
        return dump(call(load_key(key), load_left(one), load_right(other)))

    return join
