"""From what a user writes as a type to a type: Python's own, dataclasses, DDL texts, Spark's objects."""

import dataclasses
import datetime
import decimal
import enum
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ottla.streams.errors import TypeMismatch
from ottla.streams.types.ddl import parse_ddl, parse_json
from ottla.streams.types.struct import Anything, Choice, Field, Pair, Struct
from ottla.streams.types.type import (
    Array,
    Boolean,
    Bytes,
    Day,
    Dictionary,
    Exact,
    Instant,
    Integer,
    Nullable,
    Real,
    Text,
    Type,
)

_SIMPLE: dict[Any, Type] = {
    str: Text(),
    bytes: Bytes(),
    bytearray: Bytes(),
    bool: Boolean(),
    int: Integer(),
    float: Real(),
    decimal.Decimal: Exact(),
    datetime.datetime: Instant(),
    datetime.date: Day(),
    Any: Anything(),
    object: Anything(),
    dict: Anything(),
    list: Anything(),
}

HINT = "a type is str, bytes, bool, int, float, Decimal, datetime, date, Any, an Enum, a dataclass, a list or a dict"


def type_of(given: Any) -> Type:
    """Return the type that a user means; TypeMismatch for what is none."""
    if isinstance(given, Type):
        return given
    if isinstance(given, str):
        return parse_ddl(given)
    if hasattr(given, "jsonValue"):  # a DataType of Spark's, which this module does not import
        return parse_json(given.jsonValue())
    try:
        return _built(given)
    except TypeError:  # it has no hash
        raise TypeMismatch(f"{given!r} is no type", hint=HINT) from None


@cache
def _built(given: Any) -> Type:
    if given in _SIMPLE:
        return _SIMPLE[given]
    origin, arguments = typing.get_origin(given), typing.get_args(given)
    if origin in (typing.Union, types.UnionType):
        rest = [each for each in arguments if each is not type(None)]
        if len(rest) == 1 and len(arguments) == 2:
            return Nullable(type_of(rest[0]))
        raise TypeMismatch(
            f"{given} may be too many things", hint="of a union only X | None can be a type here"
        )
    if origin is typing.Annotated:
        return type_of(arguments[0])
    if origin in (list, set, frozenset, Sequence) or (origin is tuple and arguments[1:] == (...,)):
        return Array(type_of(arguments[0]))
    if origin is tuple:
        return Pair(tuple(type_of(each) for each in arguments))
    if origin in (dict, Mapping):
        return Dictionary(type_of(arguments[0]), type_of(arguments[1]))
    if isinstance(given, type) and issubclass(given, enum.Enum):
        return Choice(given)
    if dataclasses.is_dataclass(given) and isinstance(given, type):
        return _dataclass(given)
    if isinstance(given, type) and issubclass(given, tuple) and hasattr(given, "_fields"):
        return _named_tuple(given)
    raise TypeMismatch(f"{getattr(given, '__name__', given)} is not a type that records can have", hint=HINT)


def _hints(given: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(given)
    except NameError as error:
        raise TypeMismatch(
            f"{given.__name__}: {error}", hint="define the types of fields at the top of a module"
        ) from None


def _dataclass(given: type) -> Struct:
    hints = _hints(given)
    fields = []
    for each in dataclasses.fields(given):
        if not each.init:
            raise TypeMismatch(
                f"{given.__name__}.{each.name} is not an argument of its class, so it cannot be read back"
            )
        if each.kw_only:
            raise TypeMismatch(
                f"{given.__name__}.{each.name} is keyword-only, which fields of records cannot be"
            )
        missing = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        default = None if missing else _default(each)
        fields.append(_field(given, each.name, hints[each.name], default, missing))
    return Struct(tuple(fields), given)


def _default(field: "dataclasses.Field[Any]") -> Any:
    make: Any = field.default_factory
    return make() if field.default is dataclasses.MISSING else field.default


def _named_tuple(given: Any) -> Struct:
    hints = _hints(given)
    return Struct(
        tuple(
            _field(
                given,
                name,
                hints.get(name, Any),
                given._field_defaults.get(name),
                name not in given._field_defaults,
            )
            for name in given._fields
        ),
        given,
    )


def _field(owner: type, name: str, hint: Any, default: Any, missing: bool) -> Field:
    try:
        type = type_of(hint)
    except TypeMismatch as error:
        raise TypeMismatch(f"{owner.__name__}.{name}: {error.args[0]}", hint=error.hint) from None
    # A field that may be None is None when it is not there.
    return Field(name, type, default, required=missing and not isinstance(type, Nullable))
