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

# What these make is the same each time, so nobody needs to ask for it again.
_STEADY = (list, dict, set, frozenset, tuple, str, bytes, int, float, bool)

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
    if origin in (list, Sequence):
        return Array(type_of(arguments[0]))
    if origin in (set, frozenset) or (origin is tuple and arguments[1:] == (...,)):
        return Array(type_of(arguments[0]), origin)
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
    for name, hint in hints.items():
        if isinstance(hint, dataclasses.InitVar):
            raise TypeMismatch(f"{given.__name__}.{name} is no field, but only an argument of its class")
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
        fields.append(_field_of(given, each, hints[each.name]))
    return Struct(tuple(fields), given)


def _field_of(given: type, field: "dataclasses.Field[Any]", hint: Any) -> Field:
    if field.default is not dataclasses.MISSING:
        return _field(given, field.name, hint, field.default, missing=False)
    if field.default_factory is dataclasses.MISSING:
        return _field(given, field.name, hint, None, missing=True)
    if field.default_factory in _STEADY:
        return _field(given, field.name, hint, field.default_factory(), missing=False)
    return dataclasses.replace(
        _field(given, field.name, hint, None, missing=False), factory=field.default_factory
    )


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
    return Field(name, type, default, required=missing and not isinstance(type, Nullable | Anything))
