"""From what a program has to the bytes of a record, and back.

S1  None is nobody's business: it is null on the wire, in both directions, and no serializer ever sees it.
S2  The formats are those of Kafka's own serializers, so that programs in other languages read them.
S3  A function of the datum alone is called as it is; what wants to know the topic and the headers too is an object
    with `serialize` or `deserialize`.

Give `key_serializer="string"`, or `value_serializer=JSON`, or a function, or an object of your own.
"""

import json
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ottla.metadata.settings.error import InvalidValue
from ottla.wire.record import Headers


@runtime_checkable
class Serializer(Protocol):
    """A serializer that knows the topic and the headers of the record."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        """Return the bytes of `data`, or None for a null."""
        ...


@runtime_checkable
class Deserializer(Protocol):
    """A deserializer that knows the topic and the headers of the record."""

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """Return the value that `data` stands for."""
        ...


@dataclass(frozen=True, slots=True)
class Serde:
    """A format: one function from data to bytes, and one back. It does for a serializer and for a deserializer."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


class Coding(NamedTuple):
    """How to call what somebody gave: `call(topic, headers, data)` when `contextual`, else `call(data)`."""

    call: Callable[..., Any]
    contextual: bool = False


def _packed(name: str, form: str) -> Serde:
    layout = struct.Struct(form)

    def decode(data: bytes) -> Any:
        return layout.unpack(data)[0]

    return Serde(name, layout.pack, decode)


def _decode_text(data: bytes) -> str:
    return str(data, "utf-8")


def _encode_json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _encode_uuid(data: uuid.UUID | str) -> bytes:
    return str(data if isinstance(data, uuid.UUID) else uuid.UUID(data)).encode()


def _decode_uuid(data: bytes) -> uuid.UUID:
    return uuid.UUID(str(data, "utf-8"))


def _encode_boolean(data: bool) -> bytes:
    return _BOOLEANS[data]


def _decode_boolean(data: bytes) -> bool:
    return bool(_BOOLEANS.index(data))


def _bytes(data: Any) -> bytes:
    # bytes(5) would be five zeros.
    return bytes(memoryview(data))


_BOOLEANS = (b"\0", b"\1")

BYTES = Serde("bytes", _bytes, bytes)
STRING = Serde("string", str.encode, _decode_text)
SHORT = _packed("short", ">h")
INTEGER = _packed("integer", ">i")
LONG = _packed("long", ">q")
FLOAT = _packed("float", ">f")
DOUBLE = _packed("double", ">d")
BOOLEAN = Serde("boolean", _encode_boolean, _decode_boolean)
JSON = Serde("json", _encode_json, json.loads)
UUID = Serde("uuid", _encode_uuid, _decode_uuid)

SERDES: dict[str, Serde] = {
    serde.name: serde for serde in (BYTES, STRING, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, JSON, UUID)
}
# What else people call them.
_ALIASES = {"str": "string", "int": "integer", "bool": "boolean", "bytearray": "bytes", "bytebuffer": "bytes"}
_JAVA = "org.apache.kafka.common.serialization."


def serializer(given: object, name: str = "value.serializer") -> Coding | None:
    """Return how to call a serializer, or None where bytes are taken as they are; SettingError for what is none."""
    if isinstance(given, type) and issubclass(given, Serializer):
        given = given()
    if isinstance(given, Serializer):
        return Coding(given.serialize, contextual=True)
    return _coding(given, name, "Serializer")


def deserializer(given: object, name: str = "value.deserializer") -> Coding | None:
    """Return how to call a deserializer, or None where bytes stay bytes; SettingError for what is none."""
    if isinstance(given, type) and issubclass(given, Deserializer):
        given = given()
    if isinstance(given, Deserializer):
        return Coding(given.deserialize, contextual=True)
    return _coding(given, name, "Deserializer")


def _coding(given: object, name: str, kind: str) -> Coding | None:
    if given is None:
        return None
    if isinstance(given, str):
        word = given.strip().removeprefix(_JAVA).removesuffix(kind).lower()
        found = SERDES.get(_ALIASES.get(word, word))
        if found is None:
            raise InvalidValue(name, given, f"the formats are {', '.join(SERDES)}", "a format or a function")
        given = found
    if isinstance(given, Serde):
        if given is BYTES and kind == "Deserializer":
            return None
        return Coding(given.encode if kind == "Serializer" else given.decode)
    if callable(given):
        return Coding(given)
    reason = f"it is neither a function nor an object with {kind.removesuffix('r').lower()}"
    raise InvalidValue(name, given, reason, "a format, a function or an object")
