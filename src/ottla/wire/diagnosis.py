"""Finds the field to blame when a message would not encode. Runs only after an encoder has failed."""

from typing import Any

from ottla.wire.errors import ProtocolError
from ottla.wire.field import UNSET, Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive
from ottla.wire.varint import STRING_BYTES_MAX

_LIMITS = {
    "int8": (-(2**7), 2**7),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63),
    "uint16": (0, 2**16),
    "uint32": (0, 2**32),
}


def explain(message: Message, version: int, cause: Exception) -> ProtocolError:
    """The clearest error for a message that version `version` cannot express."""
    flexible = message.flexible is not None and version >= message.flexible
    fault = _fault_of_struct(message, type(message), version, flexible)
    where = f"{type(message).__name__} v{version}"
    if fault is None:
        return ProtocolError(f"{where}: {cause}")
    path, reason = fault
    return ProtocolError(f"{where}: {path.lstrip('.')} {reason}")


_Fault = tuple[str, str]


def _fault_of_struct(value: Any, cls: type[Struct], version: int, flexible: bool) -> _Fault | None:
    if not isinstance(value, cls):
        return "", f"must be {cls.__name__}, not {type(value).__name__}"
    if value.unknown_tags and not flexible:
        return ".unknown_tags", "needs a flexible version"
    for field in fields_of(cls):
        fault = _fault_of_field(getattr(value, field.name), field, version, flexible)
        if fault is not None:
            return f".{field.name}{fault[0]}", fault[1]
    return None


def _fault_of_field(value: Any, field: Field, version: int, flexible: bool) -> _Fault | None:
    if version not in field.versions:
        return None if field.ignorable or _is_default(value, field) else ("", "is not in this version")
    if value is None:
        absent = field.tag is not None and field.default is None
        return None if version in field.nullable or absent else ("", "must not be null")
    if not field.array:
        return _fault_of_value(value, field.kind, version, flexible)
    if not isinstance(value, (list, tuple)):
        return "", f"must be a list, not {type(value).__name__}"
    for index, item in enumerate(value):
        fault = _fault_of_value(item, field.kind, version, flexible)
        if fault is not None:
            return f"[{index}]{fault[0]}", fault[1]
    return None


def _fault_of_value(value: Any, kind: Any, version: int, flexible: bool) -> _Fault | None:
    if not isinstance(kind, Primitive):
        return _fault_of_struct(value, kind, version, flexible)
    reason = None
    if kind.name in _LIMITS:
        low, high = _LIMITS[kind.name]
        if not isinstance(value, int) or not low <= value < high:
            reason = f"must be an {kind.name}, not {value!r}"
    elif kind.name == "string":
        if not isinstance(value, str):
            reason = f"must be a str, not {type(value).__name__}"
        elif len(value.encode(errors="replace")) > STRING_BYTES_MAX:
            reason = f"is longer than {STRING_BYTES_MAX} bytes"
    elif (
        kind.name != "float64"
        and kind.name != "bool"
        and not isinstance(value, (bytes, bytearray, memoryview))
    ):
        reason = f"must be bytes, not {type(value).__name__}"
    return None if reason is None else ("", reason)


def _is_default(value: Any, field: Field) -> bool:
    if field.default is UNSET:
        return bool(value == ([] if field.array else field.kind()))
    return bool(value == field.default)
