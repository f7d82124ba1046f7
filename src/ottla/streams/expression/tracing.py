"""Objects that stand for a record, and write down what a function does with them."""

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from ottla.streams.errors import StreamsError, TypeMismatch
from ottla.streams.expression import rules
from ottla.streams.expression.code import Unreadable, prepared
from ottla.streams.expression.tree import ByPython, Call, Constant, Expression, Given, Make, by_python
from ottla.streams.types.build import type_of
from ottla.streams.types.plain_record import is_plain_record
from ottla.streams.types.struct import Pair, Struct, bare
from ottla.streams.types.type import Array, Boolean, Exact, Integer, Nullable, Real, Text, Type


class Traced:
    """Stands for a value that will be there later."""

    # No field of a record is called that.
    __slots__ = ("_ottla_expression",)
    _ottla_expression: Expression
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(self, expression: Expression) -> None:
        object.__setattr__(self, "_ottla_expression", expression)

    def __getattr__(self, name: str) -> Any:
        of = self._ottla_expression
        method = rules.METHODS.get((type(of.type), name))
        if method is not None:
            return lambda *given: Traced(method(of, *(_beside(each) for each in given)))
        return Traced(rules.part(of, name))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise Unreadable(f"it sets {name}")

    def __getitem__(self, at: Any) -> Any:
        return Traced(rules.item(self._ottla_expression, at))

    def __eq__(self, other: object) -> Any:
        return _equal(self, other, negated=False)

    def __ne__(self, other: object) -> Any:
        return _equal(self, other, negated=True)

    def __lt__(self, other: object) -> Any:
        return Traced(rules.compared("less", *_with(self, other)))

    def __le__(self, other: object) -> Any:
        return Traced(rules.compared("less_or_equal", *_with(self, other)))

    def __gt__(self, other: object) -> Any:
        return Traced(rules.compared("greater", *_with(self, other)))

    def __ge__(self, other: object) -> Any:
        return Traced(rules.compared("greater_or_equal", *_with(self, other)))

    def __add__(self, other: object) -> Any:
        return Traced(rules.added(*_with(self, other)))

    def __radd__(self, other: object) -> Any:
        return Traced(rules.added(*reversed(_with(self, other))))

    def __sub__(self, other: object) -> Any:
        return Traced(rules.arithmetic("subtract", *_with(self, other)))

    def __rsub__(self, other: object) -> Any:
        return Traced(rules.arithmetic("subtract", *reversed(_with(self, other))))

    def __mul__(self, other: object) -> Any:
        return Traced(rules.arithmetic("multiply", *_with(self, other)))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return Traced(rules.divided(self._ottla_expression, other))

    def __floordiv__(self, other: object) -> Any:
        return Traced(rules.floored("floor_divide", self._ottla_expression, other))

    def __mod__(self, other: object) -> Any:
        return Traced(rules.floored("modulo", self._ottla_expression, other))

    def __neg__(self) -> Any:
        return Traced(rules.arithmetic("negate", self._ottla_expression))

    def __abs__(self) -> Any:
        return Traced(rules.arithmetic("absolute", self._ottla_expression))

    def __and__(self, other: object) -> Any:
        return Traced(rules.logical("and", *_with(self, other)))

    def __or__(self, other: object) -> Any:
        return Traced(rules.logical("or", *_with(self, other)))

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        if isinstance(self._ottla_expression.type, Boolean | Integer):
            return Traced(ByPython(rules.INT, "it says ~, which of a bool is a number: -1 or -2"))
        raise Unreadable("it says ~")

    def __bool__(self, *_: Any) -> NoReturn:
        raise Unreadable("it asks whether something is true")

    __len__ = __iter__ = __contains__ = __str__ = __repr__ = __format__ = __int__ = __float__ = __bool__
    __index__ = __call__ = __next__ = __enter__ = __exit__ = __await__ = __round__ = __reduce__ = __bool__


def _with(this: Traced, other: object) -> tuple[Expression, Expression]:
    return this._ottla_expression, _beside(other, this._ottla_expression.type)


def _equal(this: Traced, other: object, *, negated: bool) -> Traced:
    if other is None:
        return Traced(rules.null(this._ottla_expression, negated=negated))
    return Traced(rules.equal(*_with(this, other), negated=negated))


def read(function: Callable[..., Any], offered: Mapping[str, Type]) -> Expression:
    """Return what a function computes of what it is offered, as an expression, or raise Unreadable.

    Its arguments are named by `offered`, in order.
    """
    given = [Traced(Given(type, name)) for name, type in offered.items()]
    try:
        if isinstance(function, types.MethodDescriptorType) and function.__objclass__ is str:  # str.lower
            found = expression_of(_method(given[0], function.__name__)(*given[1:]))
        else:
            found = expression_of(prepared(function, _KNOWN, Maker)(*given))
        found.type.ddl()  # what Spark has no type for is no result
        if (other := by_python(found)) is not None:
            raise Unreadable(other.why, found.type)
    except (TypeError, AttributeError, ValueError, ArithmeticError, LookupError, StreamsError) as error:
        # With a real record it may do, or fail in its own words.
        raise Unreadable(f"without a record it fails: {error}") from None
    return found


def trace(function: Callable[..., Any], offered: Mapping[str, Type]) -> Expression | None:
    """Return what a function computes of what it is offered, as an expression, or None if it must be called."""
    try:
        return read(function, offered)
    except Unreadable:
        return None


def _method(of: Traced, name: str) -> Any:
    if not isinstance(of._ottla_expression.type, Text):
        raise Unreadable(f"it is no method of {of._ottla_expression.type}")
    return getattr(of, name)


def _beside(given: object, type: Type | None = None) -> Expression:
    return given._ottla_expression if isinstance(given, Traced) else rules.constant(given, type)


def expression_of(given: Any) -> Expression:
    """Return what a function has returned as an expression, or raise Unreadable."""
    if isinstance(given, Traced):
        return given._ottla_expression
    if isinstance(given, tuple):
        parts = tuple(expression_of(each) for each in given)
        return Make(Pair(tuple(each.type for each in parts)), parts)
    if isinstance(given, list):
        parts = tuple(expression_of(each) for each in given)
        if len({each.type for each in parts}) != 1:
            raise Unreadable("it makes a list of nothing, or of this and that")
        return Make(Array(parts[0].type), parts)
    return rules.constant(given)


class Maker:
    """Stands for a dataclass or a NamedTuple: called, it gives an expression of its struct."""

    def __init__(self, of: type) -> None:
        self._of = of

    def __call__(self, *given: Any, **named: Any) -> Traced:
        """Write down what one is made of."""
        try:
            type = type_of(self._of)
        except TypeMismatch:
            raise Unreadable(f"{self._of.__name__} is no type of records") from None
        assert isinstance(type, Struct)
        if not is_plain_record(self._of):
            return Traced(ByPython(type, f"{self._of.__name__} does something of its own when one is made"))
        bound = inspect.signature(self._of).bind(*given, **named).arguments
        for each in type.fields:
            if each.name not in bound and each.factory is not None:
                return Traced(ByPython(type, f"the default of {each.name} is made anew for each record"))
        parts = (_fitted(bound.get(each.name, each.default), each.type) for each in type.fields)
        return Traced(Make(type, tuple(parts)))


def _fitted(given: Any, wanted: Type) -> Expression:
    """What a field is given, if it is of the field's type or can be made so without loss."""
    if given is None and isinstance(wanted, Nullable):
        return Constant(wanted, None)
    found = expression_of(given)
    inner = wanted if isinstance(found.type, Nullable) else bare(wanted)
    if found.type == inner:
        return found
    if (
        isinstance(found, Constant)
        and isinstance(inner, Exact | Real | Integer)
        and not isinstance(given, bool)
    ):
        try:
            return Constant(inner, inner.dump(given))
        except TypeMismatch:
            raise Unreadable("it makes something of a constant of another type") from None
    if inner == rules.REAL and isinstance(found.type, Integer | Real):
        return Call(inner, "widen", (found,))
    raise Unreadable(f"it makes something of {found.type} where {wanted} is wanted")


def _written_down(
    rule: Callable[[Expression], Expression], otherwise: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    return lambda given: (
        Traced(rule(given._ottla_expression)) if isinstance(given, Traced) else otherwise(given)
    )


# Builtins that are replaced while a function is read.
_KNOWN: dict[str, Any] = {
    "len": _written_down(rules.length, len),
    "str": _written_down(rules.as_text, str),
    "float": _written_down(rules.as_real, float),
    "abs": abs,
}
