"""Between which bounds a whole number lies.

Python's whole numbers have no size, Spark's have 64 bits, or 38 digits as decimals. So what is computed is only traced
where its bounds prove that 38 digits are enough on the way. Whether the result fits into the 64 bits of its type is
seen when there is one, as it is when Python computes it.
"""

from collections.abc import Callable

from ottla.streams.expression.tree import ByPython, Call, Constant, Expression
from ottla.streams.types.struct import bare
from ottla.streams.types.type import Integer

LARGEST = 10**38 - 1
# Up to here every whole number is a float.
EXACT_AS_FLOAT = 1 << 53
_SIZE_MAX = (1 << 31) - 1

Bounds = tuple[int, int]


def bounds(expression: Expression) -> Bounds:
    """Return the least and the largest that a whole number can be."""
    if isinstance(expression, Constant):
        return expression.value, expression.value
    if isinstance(expression, Call) and expression.operation in _COUNTED:
        return 0, _SIZE_MAX
    if isinstance(expression, Call) and expression.operation in _COMPUTED:
        return _COMPUTED[expression.operation](*map(bounds, expression.arguments))
    type = bare(expression.type)
    assert isinstance(type, Integer)
    half = 1 << type.bits - 1
    return -half, half - 1


def within(expression: Expression, largest: int) -> bool:
    """Return whether it is never further from zero than that."""
    least, most = bounds(expression)
    return -largest <= least and most <= largest


def is_wide(expression: Expression) -> bool:
    """Return whether it may need more than 64 bits."""
    least, most = bounds(expression)
    return least < -(1 << 63) or most >= 1 << 63


def checked(expression: Expression) -> Expression:
    """Return the expression if Spark has numbers for all that it may come to."""
    if isinstance(expression.type, Integer) and not within(expression, LARGEST):
        return ByPython(expression.type, "its whole numbers may have more than 38 digits")
    return expression


def _products(left: Bounds, right: Bounds) -> Bounds:
    found = [one * other for one in left for other in right]
    return min(found), max(found)


def _quotients(left: Bounds, by: Bounds) -> Bounds:
    found = [one // by[0] for one in left]
    return min(found), max(found)


_COMPUTED: dict[str, Callable[..., Bounds]] = {
    "add": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "subtract": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "multiply": _products,
    "negate": lambda each: (-each[1], -each[0]),
    "absolute": lambda each: (0, max(-each[0], each[1])),
    "floor_divide": _quotients,
    "modulo": lambda _, by: (0, by[0] - 1) if by[0] > 0 else (by[0] + 1, 0),
}
_COUNTED = ("length", "size")
