"""The decoder in C, where it could be built: what it has to know of a message, and the one it leaves the rest to.

A plan says of each field where it goes and how it is read, in the words of `_swift.c`. Without the compiled part, or
for a message that it has no word for, the decoder in Python does it all.
"""

import sys
from collections.abc import Callable
from typing import Any

from ottla.wire.elements import elements_max
from ottla.wire.field import Field
from ottla.wire.layout import minimum_size
from ottla.wire.message import Message, Struct, fields_of

try:
    from ottla.wire import _swift
except ImportError:  # no compiler when Ottla was installed
    _swift = None  # type: ignore[assignment]

IS_HERE = _swift is not None

_DEFAULT, _FRESH_LIST, _FRESH_STRUCT = range(3)
_KINDS = {
    name: number
    for number, name in enumerate(
        (
            "int8",
            "int16",
            "int32",
            "int64",
            "uint16",
            "uint32",
            "float64",
            "bool",
            "uuid",
            "string",
            "bytes",
            "records",
        ),
        start=3,
    )
}
_STRUCT = 15


def swift_decoder(cls: type[Message], version: int, general: Callable[..., Any]) -> Callable[..., Any]:
    """A decoder that does what `general` does, and asks it when it cannot."""
    if not IS_HERE:
        return general
    flexible = cls.flexible is not None and version >= cls.flexible
    return _swift.Reader(_plan(cls, version, flexible), general, elements_max(cls, version) or sys.maxsize)


def _plan(cls: type[Struct], version: int, flexible: bool) -> tuple[Any, ...]:
    fields = tuple(_told(field, version, flexible) for field in fields_of(cls))
    return cls, flexible, minimum_size(cls, version, flexible), fields


def _told(field: Field, version: int, flexible: bool) -> tuple[Any, ...]:
    if version not in field.versions or field.tag is not None:
        if not field.default_is_fresh:
            return field.name, _DEFAULT, False, False, False, field.default
        if field.array:
            return field.name, _FRESH_LIST, False, False, False, None
        return field.name, _FRESH_STRUCT, False, False, False, field.kind
    compact = flexible and field.flexible
    nullable = version in field.nullable
    if field.is_struct:
        return field.name, _STRUCT, field.array, compact, nullable, _plan(field.kind, version, flexible)
    return field.name, _KINDS[field.kind.name], field.array, compact, nullable, None
