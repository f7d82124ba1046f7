"""Encodes a message with long arrays a piece at a time, so that others have their turn in between.

P1  The pieces, put together, are the bytes that its encoder writes at once.
P2  A piece has no more elements than it may have, those within elements counted, down to the second level of arrays.

The encoder is called for a message that has a part of an array and all else, and what is not of that part is cut off:
what comes before the array's count and what comes after its last element is the same for each part.
"""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.varint import varint


def is_long(message: Message, version: int, piece: int) -> bool:
    """Whether an array of structs in a message, or those within its elements together, have more than a piece has."""
    array = _longest(message, version)
    rows = [] if array is None else getattr(message, array.name)
    return len(rows) > piece or sum(_size(each, version) for each in rows) > piece


def encode_piecewise(message: Message, version: int, piece: int) -> Iterator[bytes]:
    """Encode a message of which an array is long, `piece` elements at a time."""
    array = _longest(message, version)
    assert array is not None, "what is long has an array"
    rows: list[Any] = getattr(message, array.name)
    encode = type(message).encoder(version)
    part = copy.copy(message)

    def encoded(some: list[Any]) -> bytes:
        setattr(part, array.name, some)
        out = bytearray()
        encode(part, out)
        return bytes(out)

    frame = _Frame(encoded([]), encoded(rows[:1]), is_compact=_is_compact(message, version, array))
    yield frame.begin + frame.count(len(rows))
    held: list[Any] = []
    size = 0
    for row in rows:
        of_row = _size(row, version)
        if held and size + of_row > piece:
            yield frame.cut(encoded(held), len(held))
            held, size = [], 0
        if of_row > piece:
            yield from _row_piecewise(row, message, version, piece, lambda one: frame.cut(encoded([one]), 1))
        else:
            held.append(row)
            size += of_row
    if held:
        yield frame.cut(encoded(held), len(held))
    yield frame.end


def _row_piecewise(row: Any, message: Message, version: int, piece: int, encode_row: Any) -> Iterator[bytes]:
    """Encode an element whose own array is long."""
    array = _longest(row, version)
    assert array is not None
    inner: list[Any] = getattr(row, array.name)
    part = copy.copy(row)

    def encoded(some: list[Any]) -> bytes:
        setattr(part, array.name, some)
        return bytes(encode_row(part))

    frame = _Frame(encoded([]), encoded(inner[:1]), is_compact=_is_compact(message, version, array))
    yield frame.begin + frame.count(len(inner))
    for begin in range(0, len(inner), piece):
        some = inner[begin : begin + piece]
        yield frame.cut(encoded(some), len(some))
    yield frame.end


class _Frame:
    """What is around the elements of an array: known from it without any, and with one."""

    __slots__ = ("_is_compact", "begin", "end")

    def __init__(self, none: bytes, one: bytes, *, is_compact: bool) -> None:
        # They differ first in the count, and in its last byte.
        at = next(at for at, (left, right) in enumerate(zip(none, one, strict=False)) if left != right)
        self._is_compact = is_compact
        self.begin = none[: at if is_compact else at - 3]
        self.end = none[at + 1 :]

    def count(self, count: int) -> bytes:
        """How the count of so many elements is written."""
        return varint(count + 1) if self._is_compact else count.to_bytes(4, "big")

    def cut(self, data: bytes, count: int) -> bytes:
        """Only the elements, of what has so many."""
        return data[len(self.begin) + len(self.count(count)) : len(data) - len(self.end)]


def _longest(struct: Struct, version: int) -> Field | None:
    """Return the longest array of structs that a struct itself has, or None if there is none with elements."""
    best, length = None, 0
    for field in _arrays(type(struct), version):
        found = len(getattr(struct, field.name) or ())
        if found > length:
            best, length = field, found
    return best


@cache
def _arrays(cls: Any, version: int) -> tuple[Field, ...]:
    return tuple(
        field
        for field in fields_of(cls)
        if field.array and field.is_struct and field.tag is None and version in field.versions
    )


def _size(row: Any, version: int) -> int:
    kind: Any = row.__class__
    return 1 + max((len(getattr(row, each.name) or ()) for each in _arrays(kind, version)), default=0)


def _is_compact(message: Message, version: int, field: Field) -> bool:
    return message.flexible is not None and version >= message.flexible and field.flexible
