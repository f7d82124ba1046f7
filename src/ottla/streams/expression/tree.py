"""What a function computes, as a tree.

X1  An expression computes what the Python function would return. Where Python would raise, the function is no
    expression: so nothing that may be None is computed with, and nothing is divided but by a number that is not zero.
X2  The one exception is a key or a value that is null as a whole, which any record can have: see `needed`.
X3  A whole number may be larger on the way than its type: see `ranges`. Where a result is larger, it fails as Python's.
"""

from dataclasses import dataclass
from typing import Any

from ottla.streams.types.struct import Anything, Pair, Struct
from ottla.streams.types.type import Array, Nullable, Type


@dataclass(frozen=True, slots=True)
class Expression:
    """A part of a tree, of some type."""

    type: Type


@dataclass(frozen=True, slots=True)
class Given(Expression):
    """What the function is called with: key, value and so on."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """What is always the same, in the form in which Spark has it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Part(Expression):
    """A field of a struct."""

    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """An operation on others, by name; `lowering/columns.py` knows them all."""

    operation: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Make(Expression):
    """A struct, a pair or a list of others."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ByPython(Expression):
    """Something that only Python computes, and why. Its type is known, so that of what is made of it is, too."""

    why: str


def by_python(expression: Expression) -> ByPython | None:
    """Return what in an expression only Python computes, or None."""
    if isinstance(expression, ByPython):
        return expression
    if isinstance(expression, Part):
        return by_python(expression.of)
    inside: tuple[Expression, ...] = ()
    if isinstance(expression, Call):
        inside = expression.arguments
    elif isinstance(expression, Make):
        inside = expression.parts
    return next((found for each in inside if (found := by_python(each)) is not None), None)


# These take a None like any other value: == and str() do so in Python, and `widen` is what becomes of a result.
_TOLERANT = {"equal", "unequal", "is_null", "is_not_null", "to_text", "widen"}


def needed(expression: Expression, shells: int = 1) -> frozenset[str]:
    """Return the names of what must not be null for the expression to be computed, since Python would fail.

    A field of a dataclass that cannot be None must not be. So many lists and pairs at the top may hold a null: those
    that an operator takes apart, as it does with what a `map` or a `flat_map` returns.
    """
    if isinstance(expression, Part):
        return _roots(expression.of)
    if isinstance(expression, Make):
        if shells and not isinstance(expression.type, Struct):
            return frozenset().union(*(needed(each, shells - 1) for each in expression.parts))
        return frozenset().union(*(_held(each, of) for each, of in _parts(expression)))
    if isinstance(expression, Call):
        inside = frozenset().union(*(needed(each, 0) for each in expression.arguments))
        if expression.operation in _TOLERANT:
            return inside
        return inside.union(*map(_roots, expression.arguments))
    return frozenset()


def _roots(expression: Expression) -> frozenset[str]:
    return frozenset([expression.name]) if isinstance(expression, Given) else needed(expression, 0)


def _held(expression: Expression, of: Type) -> frozenset[str]:
    """What a part of something needs, where only some parts may be None."""
    if isinstance(of, Nullable | Anything):
        return needed(expression, 0)
    if isinstance(expression, Call) and expression.operation == "widen":
        return _held(expression.arguments[0], of)
    return _roots(expression)


def _parts(expression: Make) -> list[tuple[Expression, Type]]:
    type = expression.type
    if isinstance(type, Struct):
        types = [each.type for each in type.fields]
    elif isinstance(type, Pair):
        types = list(type.parts)
    else:
        assert isinstance(type, Array)
        types = [type.of] * len(expression.parts)
    return list(zip(expression.parts, types, strict=True))
