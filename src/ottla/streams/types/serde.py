"""How a type is written as the bytes of a topic.

The formats have the names of the client's own serializers, and their bytes: what a producer wrote with `long` is read
with `long`. Which one a type has unless told is Kafka Streams' choice where it has one (an int is a long of 8 bytes),
and JSON for all else.
"""

from dataclasses import dataclass
from typing import Any

from ottla.streams.errors import TypeMismatch
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import WindowedKey
from ottla.streams.types.type import Boolean, Bytes, Integer, Nullable, Real, Text, Type

_FORMATS: dict[str, Type] = {
    "string": Text(),
    "bytes": Bytes(),
    "short": Integer(16),
    "integer": Integer(32),
    "long": Integer(64),
    "float": Real(32),
    "double": Real(64),
    "boolean": Boolean(),
}
_DEFAULTS = {type: name for name, type in _FORMATS.items()}
FORMATS = (*_FORMATS, "json", "windowed")


@dataclass(frozen=True, slots=True)
class Serde:
    """A type and the format of its bytes."""

    type: Type
    format: str

    def __str__(self) -> str:
        return str(self.type) if self.format == "json" else self.format


def serde(given: Any, format: str | None = None) -> Serde:
    """Return the serde of a type, in the format that is given or that the type has by itself; TypeMismatch for none.

    Formats are string, bytes, short, integer, long, float, double, boolean, json, and windowed for windowed keys.
    """
    if isinstance(given, Serde):
        return given
    type = type_of(given)
    if isinstance(type, Nullable):
        type = type.of  # any key and any value may be null
    if format is None:
        if isinstance(type, WindowedKey):
            return Serde(type, "windowed")
        return Serde(type, _DEFAULTS.get(type, "json"))
    if format == "json":
        return Serde(type, "json")
    if format == "windowed" and isinstance(type, WindowedKey):
        return Serde(type, format)
    natural = _FORMATS.get(format)
    if natural is None:
        raise TypeMismatch(
            f"there is no format {format!r}", hint=f"formats are {', '.join(_FORMATS)} and json"
        )
    if natural.__class__ is not type.__class__:
        raise TypeMismatch(f"{type} cannot be written as {format}", hint="json can say every type")
    return Serde(type, format)
