"""Whether a function may be called to find out what it computes.

A function is read by calling it once with objects that write down what is done with them. That is only right for
functions that do the same things every time and nothing besides: no `if`, no loop, no `is None`, which such an object
could not notice, and no call of anything that is not known. So its instructions are looked at first, and what they
name is replaced: `len` by one that writes down, a dataclass by one that makes an expression.
"""

import builtins
import dataclasses
import datetime
import decimal
import dis
import enum
import types
from collections.abc import Callable
from typing import Any

# Instructions of Python 3.11 to 3.14 that are harmless. Those of later versions are not known, which is harmless too:
# then functions are called record by record.
_HARMLESS = {
    "BINARY_OP", "BINARY_SLICE", "BINARY_SUBSCR", "BUILD_LIST", "BUILD_SLICE", "BUILD_TUPLE", "CACHE", "CALL",
    "CALL_KW", "COMPARE_OP", "COPY_FREE_VARS", "EXTENDED_ARG", "KW_NAMES", "LOAD_ATTR", "LOAD_CONST", "LOAD_DEREF",
    "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST",
    "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_SMALL_INT", "NOP", "POP_TOP", "PRECALL", "PUSH_NULL", "RESUME",
    "RETURN_CONST", "RETURN_VALUE", "STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "UNARY_INVERT",
    "UNARY_NEGATIVE",
}  # fmt: skip
_CONSTANTS = (
    bool,
    int,
    float,
    str,
    bytes,
    decimal.Decimal,
    datetime.datetime,
    datetime.date,
    enum.Enum,
    type(None),
)


class Unreadable(Exception):
    """A function cannot be read as an expression. No user ever sees this: the function is called instead."""


class Members:
    """An Enum of which nothing but members can be had."""

    def __init__(self, of: type[enum.Enum]) -> None:
        self._of = of

    def __getattr__(self, name: str) -> enum.Enum:
        found = self._of.__members__.get(name)
        if found is None:
            raise Unreadable(name)
        return found


def prepared(
    function: Callable[..., Any], known: dict[str, Any], maker: Callable[[type], Any]
) -> Callable[..., Any]:
    """Return a twin of the function whose names are replaced, or raise Unreadable.

    `known` replaces builtins by name; `maker` makes what replaces a dataclass.
    """
    if not isinstance(function, types.FunctionType):
        raise Unreadable("not a Python function")
    code = function.__code__
    if code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200):  # *args, **kwargs, generators, coroutines
        raise Unreadable("not a plain function")
    names: dict[str, Any] = {}
    for each in dis.get_instructions(code):
        if each.opname not in _HARMLESS:
            raise Unreadable(each.opname)
        if each.opname == "LOAD_GLOBAL":
            names[each.argval] = _looked_up(function, each.argval, known, maker)
    cells = tuple(types.CellType(_replaced(_content(cell), maker)) for cell in function.__closure__ or ())
    for default in (function.__defaults__ or ()) + tuple((function.__kwdefaults__ or {}).values()):
        _replaced(default, maker)
    # Without this Python would put all builtins back.
    names["__builtins__"] = {}
    twin = types.FunctionType(code, names, function.__name__, function.__defaults__, cells)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _looked_up(
    function: types.FunctionType, name: str, known: dict[str, Any], maker: Callable[[type], Any]
) -> Any:
    if name in function.__globals__:
        return _replaced(function.__globals__[name], maker)
    if name in known and hasattr(builtins, name):
        return known[name]
    raise Unreadable(name)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise Unreadable("a cell is empty") from None


def _replaced(given: Any, maker: Callable[[type], Any]) -> Any:
    if isinstance(given, type) and issubclass(given, enum.Enum):
        return Members(given)
    if isinstance(given, type) and _is_record(given):
        return maker(given)
    if isinstance(given, _CONSTANTS):
        return given
    raise Unreadable(f"{given!r:.80}")


def _is_record(given: type) -> bool:
    """Whether making one does nothing but keep what it is given."""
    if dataclasses.is_dataclass(given):
        return not hasattr(given, "__post_init__") and given.__new__ is object.__new__
    return issubclass(given, tuple) and hasattr(given, "_fields")
