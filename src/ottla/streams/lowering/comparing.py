"""Comparisons as Columns: as Python makes them, by what the two are worth."""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.expression.ranges import EXACT_AS_FLOAT, within
from ottla.streams.expression.tree import Expression
from ottla.streams.types.struct import bare
from ottla.streams.types.type import Integer, Real

_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    # <=> is true or false even for nulls, as == is for None.
    "equal": lambda left, right: left.eqNullSafe(right),
    "less": lambda left, right: left < right,
    "less_or_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_or_equal": lambda left, right: left >= right,
}
# What a comparison is with its sides exchanged.
_MIRRORED = {
    "equal": "equal",
    "less": "greater",
    "less_or_equal": "greater_or_equal",
    "greater": "less",
    "greater_or_equal": "less_or_equal",
}
_ABOVE = float(1 << 63)  # the first that no bigint is


def is_comparison(operation: str) -> bool:
    """Return whether this operation compares two things."""
    return operation in _COMPARISONS or operation == "unequal"


def compared(operation: str, left: Expression, right: Expression, one: Column, two: Column) -> Column:
    """Return a comparison of two expressions, of which these are the Columns."""
    if operation == "unequal":
        return ~compared("equal", left, right, one, two)
    whole, real = _is(left, Integer), _is(right, Real)
    if whole and real:
        return _mixed(operation, left, one, two)
    if _is(left, Real) and _is(right, Integer):
        return _mixed(_MIRRORED[operation], right, two, one)
    found = _COMPARISONS[operation](one, two)
    return _unless_nan(found, one, two) if real else found


def _is(expression: Expression, kind: type) -> bool:
    return isinstance(bare(expression.type), kind)


def _unless_nan(found: Column, *reals: Column) -> Column:
    # To Spark a NaN is equal to itself, and larger than all else. A null is none.
    for each in reals:
        found = found & ~F.isnan(each)
    return found


def _mixed(operation: str, whole: Expression, number: Column, real: Column) -> Column:
    """A whole number beside a float. To round the number first may only make equal what is not."""
    compare, rounded = _COMPARISONS[operation], number.cast("double")
    if within(whole, EXACT_AS_FLOAT):
        return _unless_nan(compare(rounded, real), real)
    less = compare(F.lit(0), F.lit(1))
    exact = F.when(real == F.lit(_ABOVE), less).otherwise(compare(number, real.cast("bigint")))
    found = F.when(F.isnan(real), F.lit(False)).when(rounded != real, compare(rounded, real)).otherwise(exact)
    if operation != "equal":
        return found
    return F.when(number.isNull() | real.isNull(), number.isNull() & real.isNull()).otherwise(found)
