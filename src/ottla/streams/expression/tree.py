"""What a function computes, as a tree.

X1  An expression computes what the Python function would return. Where Python would raise, the function is no
    expression: so nothing that may be None is computed with, and nothing is divided but by a number that is not zero.
X2  The one exception is a key or a value that is null as a whole, which any record can have: see `needed`.
"""

from dataclasses import dataclass
from typing import Any

from ottla.streams.types.type import Type


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


# These take a None like any other value, as Python's == does.
_TOLERANT = {"equal", "unequal", "is_null", "is_not_null"}


def needed(expression: Expression) -> frozenset[str]:
    """Return the names of what must not be null for the expression to be computed, since Python would fail."""
    if isinstance(expression, Part):
        return _roots(expression.of)
    if isinstance(expression, Make):
        return frozenset().union(*map(needed, expression.parts))
    if isinstance(expression, Call):
        inside = frozenset().union(*map(needed, expression.arguments))
        if expression.operation in _TOLERANT:
            return inside
        return inside.union(*map(_roots, expression.arguments))
    return frozenset()


def _roots(expression: Expression) -> frozenset[str]:
    return frozenset([expression.name]) if isinstance(expression, Given) else needed(expression)
