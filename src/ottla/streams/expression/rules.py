"""Which operations can be written down, of which types, and what comes of them.

What is not here, or not of these types, is Unreadable: then Python calls the function. Nothing that may be None is
taken but by == and !=, since Python would fail on a None, and Spark would not. Nothing is taken that Spark would
compute otherwise for any value: all that is left to be looked at when there is one is how large a whole number is.
"""

import datetime
import decimal
import enum
from collections.abc import Callable
from typing import Any

from ottla.streams.expression.code import Unreadable
from ottla.streams.expression.ranges import EXACT_AS_FLOAT, LARGEST, checked, is_wide, within
from ottla.streams.expression.tree import ByPython, Call, Constant, Expression, Given, Make, Part
from ottla.streams.types.build import type_of
from ottla.streams.types.plain_record import is_plain_record
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
_SIZE_MAX = (1 << 31) - 1
# How large what is divided by may be, so that a quotient of 19 decimals says which float is nearest.
_DIVISOR_MAX = 10**6
# How large what is divided may be, so that a decimal of 38 digits holds the quotient.
_DIVIDED_MAX = 10**31

# A bool is an int, a datetime is a date: the order counts.
_CONSTANT_TYPES: tuple[tuple[type, Type], ...] = (
    (bool, BOOL),
    (float, REAL),
    (str, TEXT),
    (bytes, Bytes()),
    (datetime.datetime, Instant()),
    (datetime.date, Day()),
)


def constant(given: Any, beside: Type | None = None) -> Expression:
    """Return something that is always the same as an expression; `beside` is the type of what it is used with."""
    if isinstance(given, enum.Enum):
        type = type_of(given.__class__)
        return Constant(type, type.dump(given))
    if isinstance(given, int) and not isinstance(given, bool):
        compared = beside is not None and isinstance(bare(beside), Exact)
        return _exactly(decimal.Decimal(given)) if compared else _whole(given)
    if isinstance(given, decimal.Decimal):
        return _decimal(given) if beside is None else _exactly(given)
    for kind, type in _CONSTANT_TYPES:
        if isinstance(given, kind):
            if isinstance(given, datetime.datetime):
                _check_zone(given)
            return Constant(type, type.dump(given))
    raise Unreadable(f"it uses a {given.__class__.__name__}")


def _whole(given: int) -> Constant:
    if abs(given) > LARGEST:
        raise Unreadable("its whole numbers may have more than 38 digits")
    return Constant(INT, given)


def _decimal(given: decimal.Decimal) -> Constant:
    found = Exact().dump(given)
    if found != given:
        raise Unreadable(f"{given} is rounded")
    return Constant(Exact(), found)


def _exactly(given: decimal.Decimal) -> Constant:
    """A Decimal to be compared with, of a type that holds it digit by digit."""
    if not given.is_finite():
        raise Unreadable(f"it uses {given}")
    _, digits, exponent = given.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 38:
        raise Unreadable(f"{given} has more than 38 digits")
    type = Exact(precision, scale)
    return Constant(type, type.dump(given))


def _check_zone(given: datetime.datetime) -> None:
    if given.tzinfo is None:
        raise Unreadable("it uses a datetime without a time zone")
    if given.utcoffset() != given.replace(fold=1 - given.fold).utcoffset():
        raise Unreadable("it uses a time that clocks have shown twice or never")


class _WindowParts(Type):
    """What `windowed.window` is, until its start or its end is asked for."""

    __slots__ = ()

    def ddl(self) -> str:
        """Say that it is nothing of Spark's."""
        raise Unreadable("a window")


def part(of: Expression, name: str) -> Expression:
    """An attribute."""
    type = of.type
    if isinstance(type, Struct) and type.maker is Row and hasattr(dict, name):
        raise Unreadable(f"{name} is a method of dict: a field of that name is had by brackets")
    if isinstance(type, Struct) and (field := type.field(name)):
        return _field(of, type, field.type, name)
    if isinstance(type, WindowedKey):
        if name == "key":
            return Part(type.of, of, "key")
        if name == "window":
            return Part(_WindowParts(), of, "")
    if isinstance(type, _WindowParts) and name in _WINDOW_PARTS:
        assert isinstance(of, Part)
        return Part(INT, of.of, name)
    raise Unreadable(f"it uses {name} of {type}")


def _field(of: Expression, struct: Struct, type: Type, name: str) -> Expression:
    if struct.maker is not Row and not is_plain_record(struct.maker):
        raise Unreadable(f"{struct} does something of its own when one is made")
    if isinstance(of, Make):
        return of.parts[[each.name for each in struct.fields].index(name)]
    return Part(type, of, name)


def item(of: Expression, at: Any) -> Expression:
    """What stands in brackets."""
    type = of.type
    if isinstance(at, str) and isinstance(type, Struct) and type.maker is Row and (field := type.field(at)):
        return Part(field.type, of, at)
    if isinstance(at, slice) and isinstance(type, Text):
        return _slice(of, at)
    if isinstance(at, int) and isinstance(type, Pair) and 0 <= at < len(type.parts):
        return Part(type.parts[at], of, f"_{at + 1}")
    raise Unreadable(f"it looks into {type} by brackets")


def _slice(of: Expression, at: slice) -> Expression:
    start, stop = at.start or 0, at.stop
    whole = [each for each in (start, stop) if each is not None]
    if at.step is not None or not all(isinstance(each, int) and each >= 0 for each in whole):
        raise Unreadable("it has a slice from the end, or with steps")
    length = _SIZE_MAX if stop is None else min(max(stop - start, 0), _SIZE_MAX)
    return Call(TEXT, "substring", (of, constant(min(start + 1, _SIZE_MAX)), constant(length)))


def equal(left: Expression, right: Expression, *, negated: bool) -> Expression:
    """== and !=."""
    return _compared("unequal" if negated else "equal", left, right, _SAME)


def _compared(
    operation: str, left: Expression, right: Expression, kinds: tuple[type[Type], ...]
) -> Expression:
    try:
        _check_comparable(left, right, kinds)
    except Unreadable as reason:
        return ByPython(BOOL, str(reason))
    return Call(BOOL, operation, (left, right))


def _check_comparable(left: Expression, right: Expression, kinds: tuple[type[Type], ...]) -> None:
    one, two = bare(left.type), bare(right.type)
    if isinstance(one, Integer | Real) and isinstance(two, Integer | Real):
        mixed = one.__class__ is not two.__class__
        if mixed and is_wide(left if isinstance(one, Integer) else right):
            raise Unreadable("it compares a float with a whole number that may have more than 64 bits")
    elif isinstance(one, Exact) and isinstance(two, Exact) and Exact in kinds:
        if max(one.precision - one.scale, two.precision - two.scale) + max(one.scale, two.scale) > 38:
            raise Unreadable(f"{one} and {two} have no type in common")
    elif one != two or not isinstance(one, kinds):
        raise Unreadable(f"it compares {one} and {two}")
    elif isinstance(one, Choice) and one.of.__eq__ not in _EQUALITIES:
        raise Unreadable(f"{one} says itself what it is equal to")


_EQUALITIES = (object.__eq__, str.__eq__, int.__eq__, float.__eq__)


def null(of: Expression, *, negated: bool) -> Expression:
    """== None and != None."""
    return Call(BOOL, "is_not_null" if negated else "is_null", (of,))


def compared(operation: str, left: Expression, right: Expression) -> Expression:
    """<, <=, > and >=."""
    if bare(left.type) is not left.type or bare(right.type) is not right.type:
        raise Unreadable("it compares what may be None")
    return _compared(operation, left, right, _ORDERED)


def number(*expressions: Expression) -> Type:
    """What numbers come to."""
    for each in expressions:
        if not isinstance(each.type, Integer | Real):
            raise Unreadable(f"it computes with {each.type}")
    return REAL if any(isinstance(each.type, Real) for each in expressions) else INT


def added(left: Expression, right: Expression) -> Expression:
    """The sum of numbers, or text after text."""
    if isinstance(left.type, Text) and isinstance(right.type, Text):
        return Call(TEXT, "concat", (left, right))
    return arithmetic("add", left, right)


def arithmetic(operation: str, *operands: Expression) -> Expression:
    """What cannot fail with numbers."""
    return checked(Call(number(*operands), operation, operands))


def divided(left: Expression, by: object) -> Expression:
    """/, by what is known not to be zero."""
    right = _divisor(by)
    if number(left, right) == REAL and isinstance(left.type, Real):
        return Call(REAL, "divide", (left, right))
    if isinstance(by, float) or _is_power_of_two(by):
        return Call(REAL, "divide", (left, right))
    if within(left, EXACT_AS_FLOAT) and within(right, EXACT_AS_FLOAT):
        return Call(REAL, "divide", (left, right))
    if not is_wide(left) and within(right, _DIVISOR_MAX):
        return Call(REAL, "divide_whole", (left, right))
    return ByPython(REAL, "it divides a whole number that may be larger than 2**53 by a large one")


def floored(operation: str, left: Expression, by: object) -> Expression:
    """// and %, of whole numbers by what is known not to be zero."""
    right = _divisor(by)
    if number(left, right) == REAL:
        return ByPython(REAL, "it floors fractions")
    if is_wide(right) or (operation == "floor_divide" and is_wide(left) and not within(left, _DIVIDED_MAX)):
        return ByPython(INT, "its whole numbers may be too large to be divided")
    return Call(INT, operation, (left, right))


def _divisor(by: object) -> Expression:
    if isinstance(by, bool) or not isinstance(by, int | float):
        raise Unreadable("what it divides by may be zero")
    if not by:
        raise Unreadable("it divides by zero")
    return constant(by)


def _is_power_of_two(given: object) -> bool:
    return isinstance(given, int) and abs(given).bit_count() == 1


def logical(operation: str, *parts: Expression) -> Expression:
    """& and | of what is true or false."""
    for each in parts:
        if not isinstance(each.type, Boolean):
            raise Unreadable(f"it says & or | of {each.type}")
    return Call(BOOL, operation, parts)


def length(of: Expression) -> Expression:
    """len()."""
    if isinstance(of.type, Text | Bytes):
        return Call(INT, "length", (of,))
    if isinstance(of.type, Array | Dictionary):
        return Call(INT, "size", (of,))
    raise Unreadable(f"it asks for the length of {of.type}")


def as_text(of: Expression) -> Expression:
    """str(), which takes a key or a value that is null as well: of None it is 'None'."""
    if isinstance(of.type, Text) and not isinstance(of, Given):
        return of
    if isinstance(of.type, Text | Integer):
        return Call(TEXT, "to_text", (of,))
    raise Unreadable(f"it makes text of {of.type}")


def as_real(of: Expression) -> Expression:
    """float()."""
    number(of)
    return Call(REAL, "to_real", (of,))


def _text(of: Expression, *, filled: bool = False) -> Expression:
    if not isinstance(of.type, Text) or (filled and not (isinstance(of, Constant) and of.value)):
        raise Unreadable("it uses a method of text with something else than text")
    return of


def _on_text(operation: str, result: Type, count: int) -> Callable[..., Expression]:
    def call(of: Expression, *given: Expression) -> Expression:
        if len(given) != count:
            raise Unreadable(f"it uses a method of text with {len(given)} arguments")
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
