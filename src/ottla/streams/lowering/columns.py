"""Expressions as Columns of Spark's.

U1  A Column computes what the Python function would have returned, to the last corner: NaN is equal to nothing, `//`
    and `%` go towards minus infinity, whole numbers have no size, whitespace is what Python calls so.
U2  Where a key or a value is null that the function needs, and where a result does not fit into its type, the query
    fails with the function's place and the record.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.streams.expression.ranges import is_wide
from ottla.streams.expression.tree import Call, Constant, Expression, Given, Make, Part, needed
from ottla.streams.lowering.casing import lower, upper
from ottla.streams.lowering.comparing import compared, is_comparison
from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.lowering.failing import Failing, failing, record
from ottla.streams.lowering.whole import narrow, whole
from ottla.streams.plan.function import Function
from ottla.streams.types.struct import Pair, Struct
from ottla.streams.types.type import Array, Integer, Nullable, Real, Type

# What str.strip takes away, in Java's spelling.
_SPACE = "[" + "".join(rf"\x{{{each:x}}}" for each in range(0x3001) if chr(each).isspace()) + "]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = Failing("expression", "?", has_record=False)

Columns = Mapping[str, Column]


def column(
    expression: Expression, given: Columns, fails: Failing = _NOBODY, *, narrowed: bool = True
) -> Column:
    """Return the Column of an expression; `given` are those of what the function is called with.

    A whole number is a bigint, unless it may be larger and is not `narrowed`: then it is a decimal.
    """
    writer = _Writer(given, fails)
    return writer.result(expression, "") if narrowed else writer.number(expression)


def once(found: Column) -> Column:
    """Return the same, computed once a row however often it is looked at.

    Spark moves filters below what they filter, and has what they look at computed again there, once for each look. What
    is not deterministic it lets be, and which partition a row is in counts as that.
    """
    return F.when(F.spark_partition_id() >= 0, found)


def computed(
    function: Function, given: Columns, operator: str, shells: int = 0, *, narrowed: bool = True
) -> Column:
    """Return the Column of a function that is an expression, which fails where Python would have failed.

    So many lists and pairs at the top of its result may hold nulls.
    """
    assert function.expression is not None
    fails = failing(function, operator)
    found = column(function.expression, given, fails, narrowed=narrowed)
    for name in sorted(needed(function.expression, shells)):
        found = F.when(given[name].isNull(), _missing(name, fails)).otherwise(found)
    return found


def holds(function: Function, given: Columns, operator: str) -> Column:
    """Return the Column of a predicate, which fails where it is neither true nor false."""
    return there(function, given, operator, "a predicate returned None, which is neither True nor False")


def there(function: Function, given: Columns, operator: str, otherwise: str, shells: int = 0) -> Column:
    """Return the Column of a function whose result must not be None; `otherwise` says why it fails if it is."""
    found, expression = computed(function, given, operator, shells), function.expression
    assert expression is not None
    if isinstance(expression, Given) or isinstance(expression.type, Nullable):
        found = F.when(found.isNull(), failing(function, operator).because(otherwise)).otherwise(found)
    return found


def _missing(name: str, fails: Failing) -> Column:
    return F.raise_error(
        F.concat(
            F.lit(f"{fails.operator}: the {name} of the record "),
            record(),
            F.lit(f" is null, which the function at {fails.place} does not expect"),
        )
    )


class _Writer:
    """Writes expressions as Columns."""

    def __init__(self, given: Columns, fails: Failing) -> None:
        self._given = given
        self._fails = fails

    def result(self, expression: Expression, path: str) -> Column:
        """What leaves an expression, and has to fit into its type; `path` leads to the field that it becomes."""
        if isinstance(expression, Make):
            return self._made(expression, path)
        if isinstance(expression.type, Integer) and is_wide(expression):
            return narrow(expression, self._leaf, lambda found: self._fails.misfit(found, 64, path))
        return self._operand(expression).cast(spark_type(expression.type))

    def _made(self, expression: Make, path: str) -> Column:
        type = expression.type
        if isinstance(type, Array):
            return F.array(*(self.result(each, path) for each in expression.parts))
        if isinstance(type, Struct):
            names = [each.name for each in type.fields]
            parts = [
                self.result(each, f"{path}field {name}: ")
                for name, each in zip(names, expression.parts, strict=True)
            ]
        else:
            assert isinstance(type, Pair)
            names = [f"_{n}" for n in range(1, len(expression.parts) + 1)]
            parts = [self.result(each, path) for each in expression.parts]
        return F.struct(*[part.alias(name) for part, name in zip(parts, names, strict=True)])

    def _operand(self, expression: Expression) -> Column:
        """What is computed with: of whole numbers a bigint, or a decimal where that may not be enough."""
        if isinstance(expression, Given):
            return self._given[expression.name]
        if isinstance(expression, Constant):
            return _literal(expression.type, expression.value)
        if isinstance(expression, Part):
            return self._operand(expression.of).getField(expression.name)
        if isinstance(expression, Make):
            return self._made(expression, "")
        assert isinstance(expression, Call)
        return self._call(expression)

    def _call(self, expression: Call) -> Column:
        operation, arguments = expression.operation, expression.arguments
        if is_comparison(operation):
            left, right = arguments
            return compared(operation, left, right, self.number(left), self.number(right))
        if operation == "divide_whole":
            return _divided(*map(self.number, arguments))
        if isinstance(expression.type, Real):
            return _REAL[operation](*(self.number(each).cast("double") for each in arguments))
        if operation in _OPERATIONS:
            return _OPERATIONS[operation](*map(self.number, arguments))
        return whole(expression, self._leaf)

    def number(self, expression: Expression) -> Column:
        """An operand. Python's numbers have no sizes, so small ones are made large before they are computed with."""
        if isinstance(expression.type, Integer):
            return whole(expression, self._leaf)
        found = self._operand(expression)
        return found.cast("double") if _is_small(expression.type) else found

    def _leaf(self, expression: Expression) -> Column:
        """A whole number that is not computed."""
        found = self._operand(expression)
        return found if is_wide(expression) else found.cast("bigint")


def _is_small(type: Type) -> bool:
    of = type.of if isinstance(type, Nullable) else type
    return isinstance(of, Real) and of.bits < 64


def _literal(type: Type, value: Any) -> Column:
    if value is None:
        return F.lit(None).cast(spark_type(type))
    # Java's own old calendar is not Python's.
    if isinstance(value, datetime):
        return F.timestamp_micros(F.lit((value - _EPOCH) // timedelta(microseconds=1)).cast("bigint"))
    if isinstance(value, date):
        return F.date_from_unix_date(F.lit(value.toordinal() - _EPOCH.toordinal()))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 62:
        wide = not -(1 << 63) <= value < 1 << 63
        return F.lit(Decimal(value)).cast("decimal(38,0)" if wide else "bigint")
    return F.lit(value).cast(spark_type(type))


def _divided(left: Column, by: Column) -> Column:
    # A larger number would be rounded before it is divided, and once more after that. As decimals of 19 digits after
    # the point both are exact enough for one rounding to find the nearest float.
    large = left.cast("decimal(30,11)") / by.cast("decimal(7,0)")
    small = left.cast("double") / by.cast("double")
    return F.when(left.between(-(1 << 53), 1 << 53), small).otherwise(large.cast("double"))


def _words(text: Column) -> Column:
    return F.filter(F.split(text, _SPACE + "+", -1), lambda each: each != "")


def _split(text: Column, separator: Column) -> Column:
    quoted = F.concat(F.lit("\\Q"), F.replace(separator, F.lit("\\E"), F.lit("\\E\\\\E\\Q")), F.lit("\\E"))
    return F.split(text, quoted, -1)


_REAL: dict[str, Callable[..., Column]] = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": lambda left, right: left / right,
    "negate": lambda each: -each,
    "absolute": F.abs,
    "to_real": lambda each: each,
    "widen": lambda each: each,
}

_OPERATIONS: dict[str, Callable[..., Column]] = {
    "is_null": lambda each: each.isNull(),
    "is_not_null": lambda each: each.isNotNull(),
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "to_text": lambda each: F.coalesce(each.cast("string"), F.lit("None")),
    "length": F.length,
    "size": F.size,
    "concat": F.concat,
    "substring": lambda text, start, length: F.substring(text, start.cast("int"), length.cast("int")),
    "lower": lower,
    "upper": upper,
    "strip": lambda text: F.regexp_replace(text, rf"^{_SPACE}+|{_SPACE}+\z", ""),
    "strip_left": lambda text: F.regexp_replace(text, f"^{_SPACE}+", ""),
    "strip_right": lambda text: F.regexp_replace(text, rf"{_SPACE}+\z", ""),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "words": _words,
    "split": _split,
    "replace": F.replace,
}
