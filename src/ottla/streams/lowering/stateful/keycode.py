"""Keys as bytes: the names under which state is kept, and what the partition of a record is computed from.

K1  Keys are equal where the bytes are that a topic would get of them, as for Kafka Streams: so NaN is one key, and the
    two zeros are two. Equal keys have equal bytes here, different keys different ones, and the bytes say what the key
    was, to the last bit.
K2  Text, bytes and whole numbers have the bytes that Kafka's own serializers give them, so a key is in the operator
    partition whose number its partition in a topic of as many partitions has.
K3  A windowed key is where its key is, whatever its window.
"""

import datetime
import decimal
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

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
    normal,
)

_LENGTH = struct.Struct(">i")
_DOUBLE = struct.Struct(">d")
_SPAN = struct.Struct(">qq")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class KeyCode(NamedTuple):
    """Both ways between a plain key and its bytes."""

    encode: Encode
    decode: Decode
    anchor: Callable[[bytes], bytes]  # the part of the bytes that decides on the partition


def key_code(type: Type) -> KeyCode:
    """Return how keys of a type become bytes."""
    encode, decode = _code(type)
    if isinstance(type, WindowedKey):
        return KeyCode(encode, decode, _without_span)
    return KeyCode(encode, decode, lambda at: at)


def same_key(type: Type) -> Callable[[Any, Any], bool]:
    """Return whether two plain keys, either of which may be None, are one."""
    encode = key_code(type).encode

    def is_same(one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        return encode(one) == encode(other)

    return is_same


def _code(type: Type) -> tuple[Encode, Decode]:
    if isinstance(type, Nullable):
        return _code(type.of)
    if isinstance(type, Text | Choice | Anything):
        return str.encode, bytes.decode
    if isinstance(type, Bytes):
        return bytes, bytes
    if isinstance(type, Integer):
        width = type.bits // 8
        return (
            lambda given: given.to_bytes(width, "big", signed=True),
            lambda data: int.from_bytes(data, "big", signed=True),
        )
    if isinstance(type, Boolean):
        return lambda given: b"\1" if given else b"\0", lambda data: data == b"\1"
    if isinstance(type, Real):
        return _real_bytes, _real
    if isinstance(type, Exact):
        return lambda given: f"{normal(given):f}".encode(), lambda data: decimal.Decimal(data.decode())
    if isinstance(type, Instant):
        return (
            lambda given: ((given - _EPOCH) // _MICROSECOND).to_bytes(8, "big", signed=True),
            lambda data: _EPOCH + _MICROSECOND * int.from_bytes(data, "big", signed=True),
        )
    if isinstance(type, Day):
        return (
            lambda given: given.toordinal().to_bytes(4, "big"),
            lambda data: datetime.date.fromordinal(int.from_bytes(data, "big")),
        )
    return _composite(type)


def _composite(type: Type) -> tuple[Encode, Decode]:
    if isinstance(type, WindowedKey):
        encode, decode = _code(type.of)
        return (
            lambda given: encode(given[0]) + _span_bytes(given[1], given[2]),
            lambda data: (decode(_without_span(data)), *_span(data)),
        )
    if isinstance(type, Struct):
        return _fields([_code(each.type) for each in type.fields])
    if isinstance(type, Pair):
        return _fields([_code(each) for each in type.parts])
    if isinstance(type, Array):
        encode, decode = _code(type.of)
        return (
            lambda given: b"".join(_wrapped(encode, each) for each in given),
            lambda data: [None if part is None else decode(part) for part in _parts(data)],
        )
    if isinstance(type, Dictionary):
        return _pairs(_code(type.key), _code(type.value))
    raise AssertionError(f"no bytes for a key of type {type!r}")


# Functions inside of functions travel to Spark's processes with the globals that they name, and a Struct cannot. These
# travel by name.


def _real_bytes(given: float) -> bytes:
    # Java has many NaNs, of which Python knows one.
    return _DOUBLE.pack(given if given == given else math.nan)


def _real(data: bytes) -> Any:
    return _DOUBLE.unpack(data)[0]


def _span_bytes(start: int, end: int) -> bytes:
    return _SPAN.pack(start, end)


def _span(data: bytes) -> tuple[Any, ...]:
    return _SPAN.unpack(data[-_SPAN.size :])


def _without_span(data: bytes) -> bytes:
    return data[: -_SPAN.size]


def _wrapped(encode: Encode, given: Any) -> bytes:
    if given is None:
        return b"\xff\xff\xff\xff"
    data = encode(given)
    return _LENGTH.pack(len(data)) + data


def _parts(data: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    at = 0
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += 4
        found.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return found


def _fields(codes: list[tuple[Encode, Decode]]) -> tuple[Encode, Decode]:
    def encode(given: Any) -> bytes:
        return b"".join(_wrapped(code[0], each) for code, each in zip(codes, given, strict=True))

    def decode(data: bytes) -> Any:
        return tuple(
            None if part is None else code[1](part) for code, part in zip(codes, _parts(data), strict=True)
        )

    return encode, decode


def _pairs(key: tuple[Encode, Decode], value: tuple[Encode, Decode]) -> tuple[Encode, Decode]:
    def encode(given: Any) -> bytes:
        entries = given.items()  # which a key has in order
        return b"".join(_wrapped(key[0], each) + _wrapped(value[0], item) for each, item in entries)

    def decode(data: bytes) -> Any:
        parts = iter(_parts(data))
        return {
            key[1](name): None if part is None else value[1](part)
            for name, part in zip(parts, parts, strict=True)
            if name is not None
        }

    return encode, decode
