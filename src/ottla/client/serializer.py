"""Serializers and deserializers: from Python values to the bytes of a record, and back.

S1  None is null in Kafka, in both directions. No serializer is called with it.
S2  The formats are those of Kafka's own serializers, so that programs in other languages read them.
S3  A plain function is called with the value only. An object with `serialize` or `deserialize` also gets the topic
    and the headers.

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
class SerializationFormat:
    """A format with a function from data to bytes, and one back. It is a serializer and a deserializer."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


class SerializerCall(NamedTuple):
    """How to call a serializer: `call(topic, headers, data)` if `contextual`, else `call(data)`."""

    call: Callable[..., Any]
    contextual: bool = False


def _packed(name: str, form: str) -> SerializationFormat:
    layout = struct.Struct(form)

    def decode(data: bytes) -> Any:
        return layout.unpack(data)[0]

    return SerializationFormat(name, layout.pack, decode)


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

BYTES = SerializationFormat("bytes", _bytes, bytes)
STRING = SerializationFormat("string", str.encode, _decode_text)
SHORT = _packed("short", ">h")
INTEGER = _packed("integer", ">i")
LONG = _packed("long", ">q")
FLOAT = _packed("float", ">f")
DOUBLE = _packed("double", ">d")
BOOLEAN = SerializationFormat("boolean", _encode_boolean, _decode_boolean)
JSON = SerializationFormat("json", _encode_json, json.loads)
UUID = SerializationFormat("uuid", _encode_uuid, _decode_uuid)

SERDES: dict[str, SerializationFormat] = {
    serde.name: serde for serde in (BYTES, STRING, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, JSON, UUID)
}
# Other names.
_ALIASES = {"str": "string", "int": "integer", "bool": "boolean", "bytearray": "bytes", "bytebuffer": "bytes"}
_JAVA = "org.apache.kafka.common.serialization."


def serializer(given: object, name: str = "value.serializer") -> SerializerCall | None:
    """Return how to call a serializer, or None if the value must be bytes. Raises SettingError."""
    if isinstance(given, type) and issubclass(given, Serializer):
        given = given()
    if isinstance(given, Serializer):
        return SerializerCall(given.serialize, contextual=True)
    return _coding(given, name, "Serializer")


def deserializer(given: object, name: str = "value.deserializer") -> SerializerCall | None:
    """Return how to call a deserializer, or None if bytes stay bytes. Raises SettingError."""
    if isinstance(given, type) and issubclass(given, Deserializer):
        given = given()
    if isinstance(given, Deserializer):
        return SerializerCall(given.deserialize, contextual=True)
    return _coding(given, name, "Deserializer")


def _coding(given: object, name: str, kind: str) -> SerializerCall | None:
    if given is None:
        return None
    if isinstance(given, str):
        word = given.strip().removeprefix(_JAVA).removesuffix(kind).lower()
        found = SERDES.get(_ALIASES.get(word, word))
        if found is None:
            raise InvalidValue(name, given, f"the formats are {', '.join(SERDES)}", "a format or a function")
        given = found
    if isinstance(given, SerializationFormat):
        if given is BYTES and kind == "Deserializer":
            return None
        return SerializerCall(given.encode if kind == "Serializer" else given.decode)
    if callable(given):
        return SerializerCall(given)
    reason = f"it is neither a function nor an object with {kind.removesuffix('r').lower()}"
    raise InvalidValue(name, given, reason, "a format, a function or an object")
