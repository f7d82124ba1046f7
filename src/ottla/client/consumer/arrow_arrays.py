"""Arrow arrays of what lies in batches, made without a Python object for any of it.

Keys and values are cut out of the batches by Arrow. All bytes of the batches are laid out as an array of twice as many
pieces, value, what lies between, value, and so on, of which `take` copies every other one.

`pyarrow.array` is not called here: it loads pandas if that is installed, which takes half a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.wire.columns import Columns, Flags, Numbers, decode_headers

_NO_PIECE = np.zeros(1, np.int32)


def numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return numbers as an array of a type that keeps them as they are, without a copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def flags(values: Flags) -> pa.Array:
    """Return true and false as an array."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def pieces(data: pa.Buffer, starts: Numbers, ends: Numbers, nulls: Flags) -> pa.Array:
    """Return the pieces of `data` from each start to its end, which follow one another."""
    count = len(starts)
    if nulls.all():
        return pa.nulls(count, pa.binary())
    places = np.empty(2 * count + 1, np.int32)
    places[:-1:2] = starts
    places[1::2] = ends
    places[-1] = ends[-1]
    every = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(places), data])
    taken = every.take(numbers(np.arange(0, 2 * count, 2, dtype=np.int32), pa.int32()))
    if not nulls.any():
        return taken
    return pa.Array.from_buffers(pa.binary(), count, [_bits(~nulls), *taken.buffers()[1:]])


def names(texts: Sequence[str], counts: Sequence[int]) -> pa.Array:
    """Return each text as often as its count says."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum(np.repeat(np.array([len(text) for text in encoded], np.int32), counts), dtype=np.int32)
    whole = b"".join([text * count for text, count in zip(encoded, counts, strict=True)])
    return pa.Array.from_buffers(pa.string(), len(ends), [None, _offsets(ends), pa.py_buffer(whole)])


def headers(data: pa.Buffer, columns: Columns, kind: pa.ListType, *, null_if_none: bool = False) -> pa.Array:
    """Return the headers of each record as a list of pairs; where there are none it is empty, or null."""
    count = len(columns.ends)
    pair = kind.value_type
    if not columns.header_flags.any():
        if null_if_none:
            return pa.nulls(count, kind)
        no_pair = pa.nulls(0, pair)
        nothing = pa.py_buffer(np.zeros(count + 1, np.int32))
        return pa.Array.from_buffers(kind, count, [None, nothing], children=[no_pair])
    found = decode_headers(columns)
    named = pieces(data, found.name_starts, found.name_ends, np.zeros(len(found.name_starts), np.bool_))
    values = pieces(data, found.value_starts, found.value_ends, found.value_nulls)
    pairs = pa.StructArray.from_arrays([_text(named), values], fields=list(pair))
    ends = np.cumsum(found.counts, dtype=np.int32)
    validity = _bits(found.counts > 0) if null_if_none else None
    return pa.Array.from_buffers(kind, count, [validity, _offsets(ends)], children=[pairs])


def _bits(values: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _offsets(ends: NDArray[np.int32]) -> pa.Buffer:
    return pa.py_buffer(np.concatenate([_NO_PIECE, ends]))


def _text(named: pa.Array) -> pa.Array:
    try:
        return named.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in named.to_pylist()], pa.string())
