"""Serdes in plain Python: for what is looked up, given in tests, returned as records, or beyond Spark's own functions.

K1  decode(encode(x)) == x, for every x of the type.
K2  The bytes are those that `lowering` has Spark make, or mean the same: a record may be written by one and read by
    the other.
K3  Bytes that do not say a value of the type raise Unreadable with the reason, whatever they are.
"""

import base64
import binascii
import datetime
import decimal
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any

from ottla.client.serializer import SERDES
from ottla.streams.errors import TypeMismatch, Unreadable
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import (
    Array,
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
        return lambda data: _said(type, dump(data)).encode()
    encode = SERDES[given.format].encode

    def encoded(data: Any) -> bytes:
        try:
            return encode(dump(data))
        except struct.error as error:
            raise TypeMismatch(f"{data!r} cannot be written as {given.format}: {error}") from None

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

        def decoded(data: bytes) -> Any:
            try:
                found = json.loads(data, parse_float=decimal.Decimal)
            except ValueError as error:
                raise Unreadable(f"it is not JSON: {error}") from None
            return None if found is None else _heard(type, found, "")

        return decoded
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


def _said(type: Type, given: Any) -> str:
    """What Spark takes, as JSON."""
    if isinstance(type, Nullable):
        return "null" if given is None else _said(type.of, given)
    if isinstance(type, Anything):
        return str(given)
    if isinstance(type, Exact):
        return format(given, "f")  # digit by digit
    if isinstance(type, Array):
        return f"[{','.join(_said(type.of, each) for each in given)}]"
    if isinstance(type, Dictionary):
        return _object((_name(type.key, key), _said(type.value, value)) for key, value in given.items())
    if isinstance(type, Struct | Pair | WindowedKey):
        return _object(
            (name, _said(part, each)) for (name, part), each in zip(_parts(type), given, strict=True)
        )
    if isinstance(type, Bytes):
        given = base64.b64encode(given).decode()
    elif isinstance(type, Instant):
        given = given.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    elif isinstance(type, Day):
        given = given.isoformat()
    return json.dumps(given, ensure_ascii=False)


def _object(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in fields) + "}"


def _name(type: Type, key: Any) -> str:
    if isinstance(type, Text | Choice):
        return str(key)
    raise TypeMismatch(f"JSON has names, not {type}, as keys of a dict")


def _parts(type: Type) -> list[tuple[str, Type]]:
    if isinstance(type, Struct):
        return [(each.name, each.type) for each in type.fields]
    if isinstance(type, Pair):
        return [(f"_{n}", each) for n, each in enumerate(type.parts, 1)]
    assert isinstance(type, WindowedKey)
    return [("key", type.of), ("start", Integer()), ("end", Integer())]


def _heard(type: Type, given: Any, path: str) -> Any:
    """What JSON said, as what Spark takes."""
    if isinstance(type, Nullable):
        return None if given is None else _heard(type.of, given, path)
    if isinstance(type, Anything):
        return json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=float)
    if given is None:
        raise Unreadable(f"{path or 'it'} is missing")
    if isinstance(type, Struct):
        return _struct(type, given, path)
    if isinstance(type, Pair | WindowedKey):
        _check(given, dict, path, "an object")
        return tuple(_heard(part, given.get(name), _under(path, name)) for name, part in _parts(type))
    if isinstance(type, Array):
        _check(given, list, path, "a list")
        return [_heard(type.of, each, f"{path}[{n}]") for n, each in enumerate(given)]
    if isinstance(type, Dictionary):
        _check(given, dict, path, "an object")
        return {key: _heard(type.value, value, _under(path, key)) for key, value in given.items()}
    return _scalar(type, given, path)


def _struct(type: Struct, given: Any, path: str) -> tuple[Any, ...]:
    _check(given, dict, path, "an object")
    parts = []
    for field in type.fields:
        found = given.get(field.name)
        if found is None and not field.required:
            parts.append(None if field.default is None else field.type.dump(field.default))
        else:
            parts.append(_heard(field.type, found, _under(path, field.name)))
    return tuple(parts)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check(given: Any, kind: type[Any], path: str, wanted: str) -> None:
    if not isinstance(given, kind):
        raise Unreadable(f"{path or 'it'} is not {wanted}")


def _scalar(type: Type, given: Any, path: str) -> Any:
    try:
        if isinstance(type, Bytes):
            return base64.b64decode(given, validate=True)
        if isinstance(type, Instant):
            if isinstance(given, int | decimal.Decimal):
                return datetime.datetime.fromtimestamp(float(given), datetime.UTC)
            return type.dump(datetime.datetime.fromisoformat(given))
        if isinstance(type, Day):
            return datetime.date.fromisoformat(given)
        if isinstance(type, Exact):
            return type.dump(given if isinstance(given, int | decimal.Decimal) else decimal.Decimal(given))
        if isinstance(type, Real) and isinstance(given, decimal.Decimal):
            return float(given)
        if isinstance(type, Choice):
            if given not in type.texts():
                raise Unreadable(f"{path or 'it'} is {given!r}, which is none of {', '.join(type.texts())}")
            return given
        return type.dump(given)
    except (TypeError, ValueError, ArithmeticError, binascii.Error, TypeMismatch) as error:
        reason = error.args[0] if isinstance(error, TypeMismatch) else f"{given!r:.100} is no {type}"
        raise Unreadable(f"{path or 'it'}: {reason}") from None
