"""Encodes a message with long arrays a piece at a time, so that others have their turn in between.

P1  The pieces, put together, are the bytes that its encoder writes at once.
P2  A piece has no more elements than it may have, those within elements counted, at whatever depth. Values that are no
    structs count for little.
P3  No step looks at more elements than a piece has.

The encoder is called for a message that has a part of an array and all else, and what is not of that part is cut off:
what comes before the array's count and what comes after its last element is the same for each part.
"""

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.varint import varint

_VALUES_A_STRUCT = 20  # which take about as long to encode


def is_long(message: Message, version: int, piece: int) -> bool:
    """Whether the structs in a message, at whatever depth, are more than a piece has."""
    return _longest(message, version) is not None and _size(message, version, piece + 1) > piece + 1


def encode_piecewise(message: Message, version: int, piece: int) -> Iterator[bytes]:
    """Encode a message of which an array is long, `piece` elements at a time."""
    encoder = type(message).encoder(version)

    def encode(part: Any) -> bytes:
        out = bytearray()
        encoder(part, out)
        return bytes(out)

    is_flexible = message.flexible is not None and version >= message.flexible
    return _split(message, version, piece, encode, is_flexible=is_flexible)


def _split(
    struct: Any, version: int, piece: int, encode: Callable[[Any], bytes], *, is_flexible: bool
) -> Iterator[bytes]:
    """Encode a struct, its longest array in pieces; `encode` makes bytes of a struct like it."""
    array = _longest(struct, version)
    assert array is not None, "what is long has an array"
    rows: list[Any] = getattr(struct, array.name)
    part = copy.copy(struct)

    def encoded(some: list[Any]) -> bytes:
        setattr(part, array.name, some)
        return encode(part)

    frame = _Frame(
        encoded([]), encoded([_hollow(rows[0], version)]), is_compact=is_flexible and array.flexible
    )
    yield frame.begin + frame.count(len(rows))
    held: list[Any] = []
    size = 0
    for row in rows:
        of_row = _size(row, version, piece)
        if held and size + of_row > piece:
            yield frame.cut(encoded(held), len(held))
            held, size = [], 0
        if of_row > piece and _longest(row, version) is not None:
            yield from _split(
                row, version, piece, lambda one: frame.cut(encoded([one]), 1), is_flexible=is_flexible
            )
        else:
            held.append(row)
            size += of_row
    if held:
        yield frame.cut(encoded(held), len(held))
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


def _size(struct: Any, version: int, most: int) -> int:
    """How many structs one has in it, itself included; or some number above `most`, once that is sure (P3)."""
    size = 1
    for field in _nested(struct.__class__, version):
        value = getattr(struct, field.name)
        if not value:
            continue
        if not field.is_struct:
            size += len(value) // _VALUES_A_STRUCT
            continue
        for each in value if field.array else (value,):
            size += _size(each, version, most - size)
            if size > most:
                return size
    return size


def _hollow(struct: Any, version: int) -> Any:
    """A struct with nothing in its arrays."""
    made = copy.copy(struct)
    for field in _nested(struct.__class__, version):
        if field.array:
            setattr(made, field.name, [])
    return made


@cache
def _nested(cls: Any, version: int) -> tuple[Field, ...]:
    """What may be long in a struct."""
    return tuple(
        field for field in fields_of(cls) if (field.array or field.is_struct) and version in field.versions
    )
