"""Whole numbers as Columns: exact, however large they become on the way.

Nearly always 64 bits are enough for all of a computation. So it is done in those first, in a way that gives null where
a step needs more; only then once more in decimals of 38 digits, which `expression/ranges.py` has proved to be enough.
"""

from collections.abc import Callable
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.expression.ranges import is_wide
from ottla.streams.expression.tree import Call, Constant, Expression

_WIDE = "decimal(38,0)"
# The Column of what is no computation with whole numbers.
Leaf = Callable[[Expression], Column]


def whole(expression: Expression, leaf: Leaf) -> Column:
    """Return a whole number as a bigint, or as a decimal where 64 bits may not be enough for it."""
    if not _is_computed(expression):
        return leaf(expression)
    if not any(map(is_wide, _steps(expression))):
        return _short(expression, leaf)
    short, long = _short(expression, leaf), _long(expression, leaf)
    if is_wide(expression):
        return F.coalesce(short.cast(_WIDE), long)
    return F.coalesce(short, long.cast("bigint"))


def narrow(expression: Expression, leaf: Leaf, misfit: Callable[[Column], Column]) -> Column:
    """Return a whole number as a bigint, or `misfit` of what does not fit into 64 bits."""
    if not is_wide(expression):
        return whole(expression, leaf)
    long = _long(expression, leaf)
    fits = long.between(F.lit(Decimal(-(1 << 63))), F.lit(Decimal((1 << 63) - 1)))
    exact = F.when(fits, long.cast("bigint")).otherwise(misfit(long).cast("bigint"))
    return F.coalesce(_short(expression, leaf), exact) if _is_computed(expression) else exact


def _is_computed(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.operation in _SHORT


def _steps(expression: Expression) -> list[Expression]:
    """A computation and all that is computed on the way to it."""
    if not isinstance(expression, Call) or expression.operation not in _SHORT:
        return [expression]
    return [expression, *(step for each in expression.arguments for step in _steps(each))]


def _short(expression: Expression, leaf: Leaf) -> Column:
    """In 64 bits: null where a step does not fit."""
    if isinstance(expression, Call) and expression.operation in _SHORT:
        left, *by = expression.arguments
        rest = [_divisor(each) if _divides(expression) else _short(each, leaf) for each in by]
        return _SHORT[expression.operation](_short(left, leaf), *rest)
    if is_wide(expression):
        return F.lit(None).cast("bigint")
    return leaf(expression)


def _long(expression: Expression, leaf: Leaf) -> Column:
    """In decimals of 38 digits."""
    if isinstance(expression, Call) and expression.operation in _LONG:
        left, *by = expression.arguments
        rest = [_divisor(each) if _divides(expression) else _long(each, leaf) for each in by]
        return _LONG[expression.operation](_long(left, leaf), *rest).cast(_WIDE)
    if isinstance(expression, Constant):
        return F.lit(Decimal(expression.value)).cast(_WIDE)
    return leaf(expression).cast(_WIDE)


def _divides(expression: Call) -> bool:
    return expression.operation in ("floor_divide", "modulo")


def _divisor(expression: Expression) -> int:
    assert isinstance(expression, Constant)
    return int(expression.value)


def _zero() -> Column:
    return F.lit(0).cast("bigint")


# What is on a branch that is not taken may be computed all the same, where Spark thinks that it saves something. So
# nothing may fail there, though only its null is thrown away.
def _short_modulo(left: Column, by: int) -> Column:
    divisor = F.lit(by).cast("bigint")
    if by > 0:
        return F.pmod(left, divisor)
    rest = left % divisor
    return F.when(rest > 0, F.try_add(rest, divisor)).otherwise(rest)


def _short_floor(left: Column, by: int) -> Column:
    if by == -1:
        return F.try_subtract(_zero(), left)
    divisor, one = F.lit(by).cast("bigint"), F.lit(1).cast("bigint")
    if by > 0:
        above, below = (
            F.call_function("div", left, divisor),
            F.call_function("div", F.try_add(left, one), divisor),
        )
        return F.when(left >= 0, above).otherwise(F.try_subtract(below, one))
    quotient = F.call_function("div", left, divisor)
    return F.when(left % divisor > 0, F.try_subtract(quotient, one)).otherwise(quotient)


def _long_modulo(left: Column, by: int) -> Column:
    divisor = F.lit(Decimal(by))
    if by > 0:
        return F.pmod(left, divisor)
    rest = left % divisor
    return F.when(rest > 0, rest + divisor).otherwise(rest)


def _long_floor(left: Column, by: int) -> Column:
    # What is left is a multiple, so nothing is rounded. A quotient keeps digits after the point in any case: so what is
    # divided is given as few before it as it can have.
    return (left - _long_modulo(left, by)).cast("decimal(31,0)") / F.lit(Decimal(by))


_SHORT: dict[str, Callable[..., Column]] = {
    "add": F.try_add,
    "subtract": F.try_subtract,
    "multiply": F.try_multiply,
    "negate": lambda each: F.try_subtract(_zero(), each),
    "absolute": lambda each: F.when(each < 0, F.try_subtract(_zero(), each)).otherwise(each),
    "floor_divide": _short_floor,
    "modulo": _short_modulo,
}
_LONG: dict[str, Callable[..., Column]] = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "negate": lambda each: -each,
    "absolute": F.abs,
    "floor_divide": _long_floor,
    "modulo": _long_modulo,
}
