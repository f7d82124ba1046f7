"""Lengths and counts the fast paths leave aside: those above 127, and long arrays of numbers.

V1  An unsigned varint has at most five bytes and is below 2**31.
V2  An array is allocated only when the frame still holds that many elements of their least size.
"""

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Any

from ottla.wire.errors import ProtocolError

Buffer = bytes | bytearray
STRING_BYTES_MAX = 32767
INLINE = 128


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """The unsigned varint at `pos`, and the position after it."""
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0x7FFFFFFF:
                raise ProtocolError(f"varint {value} is over 31 bits")
            return value, pos
        shift += 7
        if shift > 28:
            raise ProtocolError("varint of more than five bytes")


def varint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_string_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact string's length plus one, when it takes more than a byte; Kafka allows 32,767 bytes."""
    size, pos = read_varint(buf, pos)
    if size > STRING_BYTES_MAX + 1:
        raise ProtocolError(f"string of {size - 1} bytes")
    return size, pos


def string_varint(size: int) -> bytes:
    """A compact string's length plus one as a varint, refused above what Kafka allows."""
    if size > STRING_BYTES_MAX + 1:
        raise ProtocolError(f"string of {size - 1} bytes, of {STRING_BYTES_MAX} allowed")
    return varint(size)


def number_format(code: str, count: int) -> str:
    """The struct format of `count` big-endian values; a `s` code cannot carry a repeat count."""
    return ">" + code * count if code == "16s" else f">{count}{code}"


def unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """`unpack_from` for 0 to 127 values of a code; built once a code, at its first use."""
    return tuple(Struct(number_format(code, count)).unpack_from for count in range(INLINE))


def packers(code: str) -> tuple[Callable[..., bytes], ...]:
    """`pack` for 0 to 127 values of a code."""
    return tuple(Struct(number_format(code, count)).pack for count in range(INLINE))


def read_many(buf: Buffer, pos: int, end: int, count: int, code: str, size: int) -> tuple[list[Any], int]:
    """`count` numbers at `pos`, when there are too many for a prepared unpacker."""
    stop = pos + count * size
    if stop > end:
        raise too_many(count, end - pos)
    return list(unpack_from(number_format(code, count), buf, pos)), stop


def pack_many(code: str, values: list[Any]) -> bytes:
    """Any number of values of one code."""
    return Struct(number_format(code, len(values))).pack(*values)


def too_many(count: int, remaining: int) -> ProtocolError:
    """The complaint about a count that the frame cannot hold."""
    return ProtocolError(f"{count} elements announced with {max(remaining, 0)} bytes left")
