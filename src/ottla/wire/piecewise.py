"""Encodes a message whose longest array is long a piece at a time, so that others have their turn in between.

P1  The pieces, put together, are the bytes that its encoder writes at once.
"""

import copy
from collections.abc import Iterator

from ottla.wire.field import Field
from ottla.wire.message import Encoder, Message, fields_of
from ottla.wire.varint import varint


def long_array(message: Message, version: int) -> Field | None:
    """Return the longest array of structs that a message itself has, or None if it has none."""
    arrays = [each for each in fields_of(type(message)) if _is_plain_array(each, version)]
    return max(arrays, key=lambda each: len(getattr(message, each.name) or ()), default=None)


def encode_piecewise(message: Message, version: int, field: Field, piece: int) -> Iterator[bytearray]:
    """Encode a message, `piece` elements of an array at a time.

    The encoder is called for a message that has a piece of the array and all else, and what is not of the piece is
    cut off: what comes before the array's count and what comes after its end is the same for all of them.
    """
    encode = type(message).encoder(version)
    elements = getattr(message, field.name)
    part = copy.copy(message)
    none, one = _encoded(part, field, [], encode), _encoded(part, field, elements[:1], encode)
    is_compact = _is_compact(message, version, field)
    counted_at = next(at for at, (left, right) in enumerate(zip(none, one, strict=False)) if left != right)
    start = counted_at if is_compact else counted_at - 3
    tail = none[start + len(_count(0, is_compact=is_compact)) :]
    yield none[:start] + _count(len(elements), is_compact=is_compact)
    for begin in range(0, len(elements), piece):
        rows = elements[begin : begin + piece]
        data = _encoded(part, field, rows, encode)
        yield data[start + len(_count(len(rows), is_compact=is_compact)) : len(data) - len(tail)]
    yield tail


def _encoded(message: Message, field: Field, elements: list[object], encode: Encoder) -> bytearray:
    out = bytearray()
    setattr(message, field.name, elements)
    encode(message, out)
    return out


def _is_plain_array(field: Field, version: int) -> bool:
    return field.array and field.is_struct and field.tag is None and version in field.versions


def _is_compact(message: Message, version: int, field: Field) -> bool:
    return message.flexible is not None and version >= message.flexible and field.flexible


def _count(count: int, *, is_compact: bool) -> bytes:
    return varint(count + 1) if is_compact else count.to_bytes(4, "big")
