"""Serdes in plain Python: for what is looked up, given in tests, returned as records, or beyond Spark's own functions.

K1  decode(encode(x)) == x, for every x of the type.
K2  The bytes are those that `lowering` has Spark make, and what it reads is read alike: a record may be written by one
    and read by the other.
K3  Bytes that do not say a value of the type raise Unreadable with the reason, whatever they are.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.client.serializer import SERDES
from ottla.streams.errors import TypeMismatch, Unreadable
from ottla.streams.types.json_text import json_text
from ottla.streams.types.json_value import json_value
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.struct import WindowedKey


class Coder:
    """A function from a value to bytes, or back, that travels by its serde."""

    __slots__ = ("_call", "_make", "_serde")

    def __init__(self, make: "Callable[[Serde], Callable[[Any], Any]]", serde: Serde) -> None:
        self._make = make
        self._serde = serde
        self._call = make(serde)

    def __call__(self, data: Any) -> Any:
        """Code it."""
        return self._call(data)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Coder, (self._make, self._serde)


def encoder(given: Serde) -> Callable[[Any], bytes]:
    """Return a function from what users have to bytes; TypeMismatch for what is not of the type."""
    return Coder(_encoder, given)


def decoder(given: Serde) -> Callable[[bytes], Any]:
    """Return a function from bytes to what users have; Unreadable for what is not of the type."""
    return Coder(_decoder, given)


def plain_decoder(given: Serde) -> Callable[[bytes], Any]:
    """Return a function from bytes to what Spark takes; Unreadable for what is not of the type."""
    return Coder(_plain_decoder, given)


def _encoder(given: Serde) -> Callable[[Any], bytes]:
    type, dump = given.type, given.type.dump
    if isinstance(type, WindowedKey) and given.format == "windowed":
        return _windowed_encoder(type)
    if given.format == "json":
        return lambda data: json_text(type, dump(data)).encode()
    encode = SERDES[given.format].encode

    def encoded(data: Any) -> bytes:
        try:
            return encode(dump(data))
        except (struct.error, OverflowError):
            raise TypeMismatch(f"{data!r:.100} cannot be written as {given.format}") from None

    return encoded


def _decoder(given: Serde) -> Callable[[bytes], Any]:
    plain, load = _plain_decoder(given), given.type.load

    def decoded(data: bytes) -> Any:
        found = plain(data)
        return None if found is None else load(found)

    return decoded


def _plain_decoder(given: Serde) -> Callable[[bytes], Any]:
    type = given.type
    if isinstance(type, WindowedKey) and given.format == "windowed":
        return _windowed_decoder(type)
    if given.format == "json":
        return lambda data: json_value(type, data)
    decode = SERDES[given.format].decode
    name = given.format

    def read(data: bytes) -> Any:
        try:
            return decode(data)
        except (ValueError, struct.error):
            raise Unreadable(f"its {len(data)} bytes are no {name}") from None

    return read


def _windowed_encoder(type: WindowedKey) -> Callable[[Any], bytes]:
    encode, session = _encoder(serde(type.of)), type.session

    def encoded(data: Any) -> bytes:
        key, (start, end) = data
        return encode(key) + (struct.pack(">qq", end, start) if session else struct.pack(">q", start))

    return encoded


def _windowed_decoder(type: WindowedKey) -> Callable[[bytes], Any]:
    decode, session, size = _plain_decoder(serde(type.of)), type.session, type.size_ms
    tail = 16 if session else 8

    def decoded(data: bytes) -> Any:
        if len(data) < tail:
            raise Unreadable(f"its {len(data)} bytes are no key of a window")
        key = decode(data[:-tail])
        if session:
            end, start = struct.unpack(">qq", data[-16:])
        else:
            (start,) = struct.unpack(">q", data[-8:])
            end = start + (size or 0)
        return key, start, end

    return decoded
