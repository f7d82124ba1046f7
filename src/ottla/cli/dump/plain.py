"""Messages as plain data: what JSON and YAML can say.

Ids are printed as Kafka prints them, bytes that are text as text, and other bytes in base64.
"""

import base64
from typing import Any

from ottla.wire.message import Struct, fields_of
from ottla.wire.uuid import uuid_text


def plain(message: Struct) -> dict[str, Any]:
    """Return the fields of a message by name."""
    found = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        name = "" if field.is_struct else field.kind.name
        if isinstance(value, list | tuple):
            found[field.name] = [_plain(each, name) for each in value]
        else:
            found[field.name] = _plain(value, name)
    return found


def _plain(value: Any, kind: str) -> Any:
    if isinstance(value, Struct):
        return plain(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return uuid_text(bytes(value)) if kind == "uuid" else shown_bytes(bytes(value))
    return value


def shown_bytes(data: bytes) -> str:
    """Return bytes as text where they are text, else in base64, marked as such."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if all(each.isprintable() or each in "\n\t\r" for each in text):
        return text
    return f"base64:{base64.b64encode(data).decode()}"
