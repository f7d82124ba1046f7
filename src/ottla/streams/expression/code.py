"""Whether a function may be called to find out what it computes.

A function is read by calling it once with objects that write down what is done with them. That is only right for
functions that do the same things every time and nothing besides: no `if`, no loop, no `is None`, which such an object
could not notice, and no call of anything that is not known. So its instructions are looked at first, and what they
name is replaced: `len` by one that writes down, a dataclass by one that makes an expression.
"""

import builtins
import datetime
import decimal
import dis
import enum
import types
from collections.abc import Callable
from typing import Any

from ottla.streams.types.plain_record import is_record
from ottla.streams.types.type import Type

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
# What other instructions are for, in a user's words; the first that begins alike counts.
_WORDS = (
    ("POP_JUMP", "it has an if, an and or an or"),
    ("JUMP_IF", "it has an if, an and or an or"),
    ("TO_BOOL", "it has an if, an and, an or or a not"),
    ("UNARY_NOT", "it has a not"),
    ("FOR_ITER", "it has a loop"),
    ("GET_ITER", "it has a loop"),
    ("JUMP", "it has a loop"),
    ("IS_OP", "it says is"),
    ("CONTAINS_OP", "it says in"),
    ("FORMAT", "it has an f-string"),
    ("CONVERT_VALUE", "it has an f-string"),
    ("BUILD_STRING", "it has an f-string"),
    ("BUILD_MAP", "it makes a dict"),
    ("BUILD_CONST_KEY_MAP", "it makes a dict"),
    ("BUILD_SET", "it makes a set"),
    ("MAKE_FUNCTION", "it has a function inside"),
    ("IMPORT", "it imports something"),
    ("STORE", "it sets something"),
    ("RAISE", "it raises something"),
    ("UNPACK", "it unpacks something"),
)
# What of a constant is not the same each time.
_NEVER_THE_SAME = {"now", "today", "utcnow"}
_CONSTANTS = (
    bool,
    int,
    float,
    str,
    bytes,
    decimal.Decimal,
    datetime.datetime,
    datetime.date,
    type(None),
)


class Unreadable(Exception):
    """A function cannot be read as an expression, and why. No user ever sees this but in `describe`: the function is
    called instead. Its type may be known all the same.
    """

    def __init__(self, why: str, type: Type | None = None) -> None:
        super().__init__(why)
        self.type = type


class Members:
    """An Enum of which nothing but members can be had."""

    def __init__(self, of: type[enum.Enum]) -> None:
        self._of = of

    def __getattr__(self, name: str) -> enum.Enum:
        found = self._of.__members__.get(name)
        if found is None:
            raise Unreadable(f"{name} is no member of {self._of.__name__}")
        return found


def prepared(
    function: Callable[..., Any], known: dict[str, Any], maker: Callable[[type], Any]
) -> Callable[..., Any]:
    """Return a twin of the function whose names are replaced, or raise Unreadable.

    `known` replaces builtins by name; `maker` makes what replaces a dataclass.
    """
    if not isinstance(function, types.FunctionType):
        raise Unreadable("it is not written in Python" if callable(function) else "it is no function")
    code = function.__code__
    if code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200):  # *args, **kwargs, generators, coroutines
        raise Unreadable("it has *args or **kwargs, or is a generator or a coroutine")
    names: dict[str, Any] = {}
    texts: list[Any] = []
    formats = False
    for each in dis.get_instructions(code):
        if each.opname not in _HARMLESS:
            raise Unreadable(_words(each.opname))
        if each.opname == "LOAD_GLOBAL":
            names[each.argval] = _looked_up(function, each.argval, known, maker)
        if each.opname == "LOAD_CONST":
            texts.append(each.argval)
        formats |= each.opname == "BINARY_OP" and each.argrepr == "%"
    cells = tuple(types.CellType(_replaced(_content(cell), maker)) for cell in function.__closure__ or ())
    defaults = (function.__defaults__ or ()) + tuple((function.__kwdefaults__ or {}).values())
    for default in defaults:
        _replaced(default, maker)
    if formats:
        contents = [each.cell_contents for each in cells]
        _check_no_text([*texts, *names.values(), *contents, *defaults])
    if not _NEVER_THE_SAME.isdisjoint(code.co_names):
        raise Unreadable("it asks for the time")
    # Without this Python would put all builtins back.
    names["__builtins__"] = {}
    twin = types.FunctionType(code, names, function.__name__, function.__defaults__, cells)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _words(instruction: str) -> str:
    found = next((words for beginning, words in _WORDS if instruction.startswith(beginning)), None)
    return found or f"it does something that is only Python's ({instruction})"


def _check_no_text(constants: list[Any]) -> None:
    """Unreadable for text that `%` may be meant to fill in: it asks what stands for the record for nothing at all."""
    if any(isinstance(each, str | bytes) for each in constants):
        raise Unreadable("% may fill in a text")


def _looked_up(
    function: types.FunctionType, name: str, known: dict[str, Any], maker: Callable[[type], Any]
) -> Any:
    if name in function.__globals__:
        return _replaced(function.__globals__[name], maker)
    if name in known and hasattr(builtins, name):
        return known[name]
    raise Unreadable(f"it calls {name}" if hasattr(builtins, name) else f"there is no {name}")


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise Unreadable("it uses a variable that has no value yet") from None


def _replaced(given: Any, maker: Callable[[type], Any]) -> Any:
    if isinstance(given, type) and issubclass(given, enum.Enum):
        return Members(given)
    if isinstance(given, type) and is_record(given):
        return maker(given)
    # What is derived from these may compute in ways of its own, as numpy's numbers do.
    if type(given) in _CONSTANTS or isinstance(given, enum.Enum):
        return given
    name = getattr(given, "__name__", None)
    if isinstance(given, types.ModuleType | type) or callable(given):
        raise Unreadable(f"it uses {name or type(given).__name__}")
    raise Unreadable(f"it uses a {type(given).__name__} from outside")
