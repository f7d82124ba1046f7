"""Keys as bytes: two keys are one if they have the same bytes, and where keys have an order it is that of their bytes.

Keys are one where the bytes are that a topic would get of them, as for Kafka Streams. So NaN, which is equal to
nothing, is one key, and the two zeros are two, though Python calls them equal. Text, bytes and numbers have the very
bytes that Kafka's serializers give them.
"""

import datetime
import struct
from typing import Any

from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
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

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def key_bytes(type: Type, key: Any) -> bytes:
    """Return the bytes of a plain key."""
    if isinstance(type, Nullable):
        return key_bytes(type.of, key)
    if isinstance(type, Text | Choice | Anything):
        return str(key).encode("utf-8", "surrogatepass")
    if isinstance(type, Bytes):
        return bytes(key)
    if isinstance(type, Integer):
        return int(key).to_bytes(type.bits // 8, "big", signed=True)
    if isinstance(type, Boolean):
        return b"\1" if key else b"\0"
    if isinstance(type, Real):
        return struct.pack(">d", float("nan") if key != key else key)
    if isinstance(type, Exact):
        text = format(key or abs(key), "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    if isinstance(type, Instant):
        return int((key - _EPOCH) // datetime.timedelta(microseconds=1)).to_bytes(8, "big", signed=True)
    if isinstance(type, Day):
        return int(key.toordinal()).to_bytes(4, "big")
    if isinstance(type, WindowedKey):
        return key_bytes(type.of, key[0]) + struct.pack(">qq", key[1], key[2])
    return b"".join(_part(of, part) for of, part in _parts(type, key))


def _parts(type: Type, key: Any) -> list[tuple[Type, Any]]:
    if isinstance(type, Struct):
        return [(field.type, part) for field, part in zip(type.fields, key, strict=True)]
    if isinstance(type, Pair):
        return list(zip(type.parts, key, strict=True))
    if isinstance(type, Array):
        return [(type.of, part) for part in key]
    if isinstance(type, Dictionary):
        return [each for name, item in key.items() for each in ((type.key, name), (type.value, item))]
    raise AssertionError(f"no bytes for a key of type {type!r}")


def _part(type: Type, given: Any) -> bytes:
    if given is None:
        return struct.pack(">i", -1)
    data = key_bytes(type, given)
    return struct.pack(">i", len(data)) + data
