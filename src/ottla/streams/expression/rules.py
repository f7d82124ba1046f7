"""Which operations can be written down, of which types, and what comes of them.

What is not here, or not of these types, is Unreadable: then Python calls the function. Nothing that may be None is
taken but by == and !=, since Python would fail on a None, and Spark would not.
"""

import datetime
import decimal
import enum
from collections.abc import Callable
from typing import Any

from ottla.streams.expression.code import Unreadable
from ottla.streams.expression.tree import Call, Constant, Expression, Part
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import Choice, Pair, Row, Struct, WindowedKey, bare
from ottla.streams.types.type import (
    Array,
    Boolean,
    Bytes,
    Day,
    Dictionary,
    Exact,
    Instant,
    Integer,
    Real,
    Text,
    Type,
)

INT, REAL, TEXT, BOOL = Integer(), Real(), Text(), Boolean()
_ORDERED = (Text, Exact, Day, Instant, Bytes)
_SAME = (Text, Boolean, Bytes, Exact, Instant, Day, Choice)
_WINDOW_PARTS = ("start", "end")

# A bool is an int, a datetime is a date: the order counts.
_CONSTANT_TYPES: tuple[tuple[type, Type], ...] = (
    (enum.Enum, TEXT),
    (bool, BOOL),
    (int, INT),
    (float, REAL),
    (str, TEXT),
    (bytes, Bytes()),
    (decimal.Decimal, Exact()),
    (datetime.datetime, Instant()),
    (datetime.date, Day()),
)


def constant(given: Any, beside: Type | None = None) -> Expression:
    """Return something that is always the same as an expression; `beside` is the type of what it is used with."""
    if isinstance(beside, Exact) and isinstance(given, int) and not isinstance(given, bool):
        return Constant(beside, beside.dump(given))
    for kind, type in _CONSTANT_TYPES:
        if isinstance(given, kind):
            if isinstance(given, datetime.datetime) and given.tzinfo is None:
                raise Unreadable("a datetime without a time zone")
            found = type_of(given.__class__) if isinstance(given, enum.Enum) else type
            return Constant(found, found.dump(given))
    raise Unreadable(f"{given!r:.80}")


class _WindowParts(Type):
    """What `windowed.window` is, until its start or its end is asked for."""

    __slots__ = ()

    def ddl(self) -> str:
        """Say that it is nothing of Spark's."""
        raise Unreadable("a window")


def part(of: Expression, name: str) -> Expression:
    """An attribute."""
    type = of.type
    if isinstance(type, Struct) and (field := type.field(name)):
        return Part(field.type, of, name)
    if isinstance(type, WindowedKey):
        if name == "key":
            return Part(type.of, of, "key")
        if name == "window":
            return Part(_WindowParts(), of, "")
    if isinstance(type, _WindowParts) and name in _WINDOW_PARTS:
        assert isinstance(of, Part)
        return Part(INT, of.of, name)
    raise Unreadable(name)


def item(of: Expression, at: Any) -> Expression:
    """What stands in brackets."""
    type = of.type
    if isinstance(at, str) and isinstance(type, Struct) and type.maker is Row:
        return part(of, at)
    if isinstance(at, slice) and isinstance(type, Text):
        return _slice(of, at)
    if isinstance(at, int) and isinstance(type, Pair) and 0 <= at < len(type.parts):
        return Part(type.parts[at], of, f"_{at + 1}")
    raise Unreadable("[]")


def _slice(of: Expression, at: slice) -> Expression:
    start, stop = at.start or 0, at.stop
    whole = [each for each in (start, stop) if each is not None]
    if at.step is not None or not all(isinstance(each, int) and each >= 0 for each in whole):
        raise Unreadable("a slice from the end, or with steps")
    length = (1 << 31) - 1 if stop is None else max(stop - start, 0)
    return Call(TEXT, "substring", (of, constant(start + 1), constant(length)))


def equal(left: Expression, right: Expression, *, negated: bool) -> Expression:
    """== and !=."""
    one, two = bare(left.type), bare(right.type)
    numbers = isinstance(one, Integer | Real) and isinstance(two, Integer | Real)
    same = one == two or (isinstance(one, Exact) and isinstance(two, Exact))
    if not numbers and not (same and isinstance(one, _SAME)):
        raise Unreadable("these may be compared in ways that Spark does not know")
    return Call(BOOL, "unequal" if negated else "equal", (left, right))


def null(of: Expression, *, negated: bool) -> Expression:
    """== None and != None."""
    return Call(BOOL, "is_not_null" if negated else "is_null", (of,))


def compared(operation: str, left: Expression, right: Expression) -> Expression:
    """<, <=, > and >=."""
    one, two = left.type, right.type
    numbers = isinstance(one, Integer | Real) and isinstance(two, Integer | Real)
    if not numbers and not (isinstance(one, _ORDERED) and one.__class__ is two.__class__):
        raise Unreadable(operation)
    return Call(BOOL, operation, (left, right))


def number(*expressions: Expression) -> Type:
    """What numbers come to."""
    if not all(isinstance(each.type, Integer | Real) for each in expressions):
        raise Unreadable("not numbers")
    return REAL if any(isinstance(each.type, Real) for each in expressions) else INT


def added(left: Expression, right: Expression) -> Expression:
    """The sum of numbers, or text after text."""
    if isinstance(left.type, Text) and isinstance(right.type, Text):
        return Call(TEXT, "concat", (left, right))
    return arithmetic("add", left, right)


def arithmetic(operation: str, *operands: Expression) -> Expression:
    """What cannot fail with numbers."""
    return Call(number(*operands), operation, operands)


def divided(operation: str, left: Expression, by: object, result: Type) -> Expression:
    """/, // and %, by what is known not to be zero."""
    if isinstance(by, bool) or not isinstance(by, int | float) or not by:
        raise Unreadable("what it is divided by may be zero")
    right = constant(by)
    if number(left, right) == REAL and result == INT:
        raise Unreadable("floors of fractions")
    return Call(result, operation, (left, right))


def logical(operation: str, *parts: Expression) -> Expression:
    """&, | and ~ of what is true or false."""
    if not all(isinstance(each.type, Boolean) for each in parts):
        raise Unreadable(operation)
    return Call(BOOL, operation, parts)


def length(of: Expression) -> Expression:
    """len()."""
    if isinstance(of.type, Text | Bytes):
        return Call(INT, "length", (of,))
    if isinstance(of.type, Array | Dictionary):
        return Call(INT, "size", (of,))
    raise Unreadable("len")


def as_text(of: Expression) -> Expression:
    """str()."""
    if isinstance(of.type, Text):
        return of
    if isinstance(of.type, Integer):
        return Call(TEXT, "to_text", (of,))
    raise Unreadable("str")


def as_real(of: Expression) -> Expression:
    """float()."""
    number(of)
    return Call(REAL, "to_real", (of,))


def _text(of: Expression, *, filled: bool = False) -> Expression:
    if not isinstance(of.type, Text) or (filled and not (isinstance(of, Constant) and of.value)):
        raise Unreadable("not a text")
    return of


def _on_text(operation: str, result: Type, count: int) -> Callable[..., Expression]:
    def call(of: Expression, *given: Expression) -> Expression:
        if len(given) != count:
            raise Unreadable(operation)
        return Call(result, operation, (of, *(_text(each) for each in given)))

    return call


def _split(of: Expression, *given: Expression) -> Expression:
    if not given:
        return Call(Array(TEXT), "words", (of,))
    (separator,) = given
    return Call(Array(TEXT), "split", (of, _text(separator, filled=True)))


def _replace(of: Expression, old: Expression, new: Expression) -> Expression:
    return Call(TEXT, "replace", (of, _text(old, filled=True), _text(new)))


# Of methods that values have, those that Spark computes alike.
METHODS: dict[tuple[type[Type], str], Callable[..., Expression]] = {
    (Text, "lower"): _on_text("lower", TEXT, 0),
    (Text, "upper"): _on_text("upper", TEXT, 0),
    (Text, "strip"): _on_text("strip", TEXT, 0),
    (Text, "lstrip"): _on_text("strip_left", TEXT, 0),
    (Text, "rstrip"): _on_text("strip_right", TEXT, 0),
    (Text, "startswith"): _on_text("starts_with", BOOL, 1),
    (Text, "endswith"): _on_text("ends_with", BOOL, 1),
    (Text, "split"): _split,
    (Text, "replace"): _replace,
}
