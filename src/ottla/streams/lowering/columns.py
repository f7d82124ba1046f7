"""Expressions as Columns of Spark's.

U1  A Column computes what the Python function would have returned, to the last corner: NaN is equal to nothing, `//`
    and `%` go towards minus infinity, whitespace is what Python calls so.
U2  Where a key or a value is null that the function needs, the query fails with the function's place and the record.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.expression.tree import Call, Constant, Expression, Given, Make, Part, needed
from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.plan.function import Function
from ottla.streams.types.struct import Pair, Struct
from ottla.streams.types.type import Array, Integer, Real

# What str.strip takes away. (?U) makes \s all that Unicode calls white space; Python has four separators more.
_SPACE = r"(?U)[\s\x1c-\x1f]"

Columns = Mapping[str, Column]


def column(expression: Expression, given: Columns) -> Column:
    """Return the Column of an expression; `given` are those of what the function is called with."""
    if isinstance(expression, Given):
        return given[expression.name]
    if isinstance(expression, Constant):
        return F.lit(expression.value).cast(spark_type(expression.type))
    if isinstance(expression, Part):
        return column(expression.of, given).getField(expression.name)
    if isinstance(expression, Make):
        return _made(expression, [column(each, given) for each in expression.parts])
    assert isinstance(expression, Call)
    arguments = [_widened(each, column(each, given)) for each in expression.arguments]
    if expression.operation in _COMPARISONS:
        return _compared(expression, arguments)
    return _OPERATIONS[expression.operation](*arguments).cast(spark_type(expression.type))


def once(found: Column) -> Column:
    """Return the same, computed once a row however often it is looked at.

    Spark moves filters below what they filter, and has what they look at computed again there, once for each look. What
    is not deterministic it lets be, and which partition a row is in counts as that.
    """
    return F.when(F.spark_partition_id() >= 0, found)


def computed(function: Function, given: Columns, operator: str) -> Column:
    """Return the Column of a function that is an expression, which fails where Python would have failed on a null."""
    assert function.expression is not None
    found = column(function.expression, given)
    for name in sorted(needed(function.expression)):
        found = F.when(given[name].isNull(), _missing(name, function.place, operator)).otherwise(found)
    return found


def _missing(name: str, place: str, operator: str) -> Column:
    record = F.concat_ws("", F.col("topic"), F.lit("-"), F.col("partition"), F.lit("@"), F.col("offset"))
    return F.raise_error(
        F.concat(
            F.lit(f"{operator}: the {name} of the record "),
            record,
            F.lit(f" is null, which the function at {place} does not expect"),
        )
    )


def _widened(expression: Expression, found: Column) -> Column:
    """Python's numbers have no sizes, so small ones are made large before anything is done with them."""
    if isinstance(expression.type, Integer) and expression.type.bits < 64:
        return found.cast("bigint")
    if isinstance(expression.type, Real) and expression.type.bits < 64:
        return found.cast("double")
    return found


def _made(expression: Make, parts: list[Column]) -> Column:
    if isinstance(expression.type, Array):
        return F.array(*parts)
    if isinstance(expression.type, Struct):
        names = [each.name for each in expression.type.fields]
    else:
        assert isinstance(expression.type, Pair)
        names = [f"_{n}" for n in range(1, len(parts) + 1)]
    return F.struct(*[part.alias(name) for part, name in zip(parts, names, strict=True)])


def _compared(expression: Call, arguments: list[Column]) -> Column:
    left, right = arguments
    found = _COMPARISONS[expression.operation](left, right)
    reals = [
        each
        for each, part in zip(arguments, expression.arguments, strict=True)
        if isinstance(part.type, Real)
    ]
    for each in reals:
        found = found & ~F.isnan(each)
    return ~found if expression.operation == "unequal" else found


def _modulo(left: Column, right: Column) -> Column:
    return ((left % right) + right) % right


def _words(text: Column) -> Column:
    return F.filter(F.split(text, _SPACE + "+", -1), lambda each: each != "")


def _split(text: Column, separator: Column) -> Column:
    quoted = F.concat(F.lit("\\Q"), F.replace(separator, F.lit("\\E"), F.lit("\\E\\\\E\\Q")), F.lit("\\E"))
    return F.split(text, quoted, -1)


_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    # <=> is true or false even for nulls, as == is for None.
    "equal": lambda left, right: left.eqNullSafe(right),
    "unequal": lambda left, right: left.eqNullSafe(right),
    "less": lambda left, right: left < right,
    "less_or_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_or_equal": lambda left, right: left >= right,
}

_OPERATIONS: dict[str, Callable[..., Column]] = {
    "is_null": lambda each: each.isNull(),
    "is_not_null": lambda each: each.isNotNull(),
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "not": lambda each: ~each,
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": lambda left, right: left.cast("double") / right.cast("double"),
    "floor_divide": lambda left, right: F.call_function("div", left - _modulo(left, right), right),
    "modulo": _modulo,
    "negate": lambda each: -each,
    "absolute": F.abs,
    "to_text": lambda each: each.cast("string"),
    "to_real": lambda each: each.cast("double"),
    "length": F.length,
    "size": F.size,
    "concat": F.concat,
    "substring": F.substring,
    "lower": F.lower,
    "upper": F.upper,
    "strip": lambda text: F.regexp_replace(text, rf"^{_SPACE}+|{_SPACE}+\z", ""),
    "strip_left": lambda text: F.regexp_replace(text, f"^{_SPACE}+", ""),
    "strip_right": lambda text: F.regexp_replace(text, rf"{_SPACE}+\z", ""),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "words": _words,
    "split": _split,
    "replace": F.replace,
}
