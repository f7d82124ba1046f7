"""Records of many batches written at once, from columns of bytes instead of objects: the way back of `wire.columns`.

What stands before a record's key and before its value are a few varints. Their bytes are worked out for all records
together, by numpy; Arrow then joins the pieces of each record, and so those of all records, one after another.

K5  What comes out is what `wire.record.encode_records` would have written for the same records, with the first
    timestamp of a batch as its base and offsets that count from 0 in each batch.
K6  A key or value that is null is written as null; of headers, no name is.

Only writers of many records import this; a broker never does (`tests/tidy/test_columns.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
_Zigzag: TypeAlias = NDArray[np.uint64]

# The most bytes around key, value and headers: size, attributes, time, number, two lengths and a count.
OVERHEAD_BYTES_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5
_NULL = -1
_NO_HEADERS = b"\x00"


class Encoded(NamedTuple):
    """The records of some batches, one after another; batch number i lies from `bounds[i]` to `bounds[i + 1]`."""

    data: memoryview
    bounds: Numbers
    base_timestamps: Numbers
    max_timestamps: Numbers


def encode_columns(
    keys: pa.Array | None, values: pa.Array, headers: pa.Array | None, timestamps: Numbers, starts: Numbers
) -> Encoded:
    """Return the records in wire form; `starts` are the rows with which batches begin, of which the first is 0.

    Keys and values are columns of binary, all of one type, large or not; `headers` is what `encode_headers` returns.
    """
    count = len(values)
    kind = values.type
    counts = np.diff(starts, append=count)
    bases = timestamps[starts]
    value_sizes = lengths(values)
    times = _zigzag(timestamps - np.repeat(bases, counts))
    numbers = _zigzag(np.arange(count) - np.repeat(starts, counts))
    value_lengths = _zigzag(value_sizes)
    sizes = _widths(times) + _widths(numbers) + _widths(value_lengths) + np.maximum(value_sizes, 0) + 1
    sizes += 1 if headers is None else lengths(headers)
    attributes = np.zeros(count, np.uint64)
    tail = pa.scalar(_NO_HEADERS, kind) if headers is None else headers
    pieces: list[pa.Array | pa.Scalar]
    front: tuple[_Zigzag, ...]
    if keys is None:
        key_lengths = _zigzag(np.full(count, _NULL))
        sizes += 1
        front = (_zigzag(sizes), attributes, times, numbers, key_lengths, value_lengths)
        pieces = [_varints(front, kind), values, tail]
    else:
        key_sizes = lengths(keys)
        key_lengths = _zigzag(key_sizes)
        sizes += _widths(key_lengths) + np.maximum(key_sizes, 0)
        front = (_zigzag(sizes), attributes, times, numbers, key_lengths)
        pieces = [_varints(front, kind), keys, _varints((value_lengths,), kind), values, tail]
    joined = _join(pieces, kind)
    ends = places(joined)
    return Encoded(
        memoryview(joined.buffers()[2]),
        ends[np.append(starts, count)],
        bases,
        np.maximum.reduceat(timestamps, starts) if count else bases,
    )


def encode_headers(headers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the headers of each row in wire form, from a column of lists of structs of a name and a value."""
    counts = np.asarray(pc.fill_null(pc.list_value_length(headers), 0)).astype(np.int64)
    firsts = np.zeros(len(headers) + 1, np.int64)
    np.cumsum(counts, out=firsts[1:])
    flat = headers.flatten()
    names, values = flat.field(0).cast(kind), flat.field(1).cast(kind)
    pieces = [
        _varints((_zigzag(lengths(names)),), kind),
        names,
        _varints((_zigzag(lengths(values)),), kind),
        values,
    ]
    each = _join(pieces, kind)
    ends = places(each)[firsts]
    # What the headers of one row have become lies together: a row's piece is from its first to its last.
    together = _binary(ends, each.buffers()[2], kind)
    return _join([_varints((_zigzag(counts),), kind), together], kind)


def lengths(column: pa.Array) -> Numbers:
    """Return how long each of a column of bytes is, -1 where it is null."""
    found = places(column)
    sizes = np.diff(found)
    if column.null_count:
        sizes[np.asarray(column.is_null())] = _NULL
    return sizes


def places(column: pa.Array) -> Numbers:
    """Return where each begins in the buffer of a column of bytes, and where the last one ends."""
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    number = np.int64 if wide else np.int32
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(1, np.int64)
    found = np.frombuffer(buffer, number, len(column) + 1, column.offset * np.dtype(number).itemsize)
    return found.astype(np.int64)


def _zigzag(numbers: Numbers) -> _Zigzag:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _widths(zigzag: _Zigzag) -> Numbers:
    """How many bytes each number takes as a varint."""
    widths = np.ones(len(zigzag), np.int64)
    largest = int(zigzag.max(initial=0)) >> 7
    shift = 7
    while largest:
        widths += zigzag >= np.uint64(1 << shift)
        largest >>= 7
        shift += 7
    return widths


def _varints(columns: Sequence[_Zigzag], kind: pa.DataType) -> pa.Array:
    """A column of bytes: in each row the varints of that row's numbers, one after another."""
    widths = [_widths(column) for column in columns]
    widest = [int(width.max(initial=1)) for width in widths]
    # Each number has room for the widest of its column; what a row does not need is taken out at the end.
    table = np.empty((len(columns[0]), sum(widest)), np.uint8)
    needed: NDArray[np.bool_] | None = None
    place = 0
    for column, width, most in zip(columns, widths, widest, strict=True):
        if most == 1:
            table[:, place] = column
        else:
            for number in range(most):
                byte = ((column >> np.uint64(7 * number)) & np.uint64(0x7F)).astype(np.uint8)
                table[:, place + number] = byte | ((width > number + 1).view(np.uint8) << 7)
            if int(width.min()) < most:
                if needed is None:
                    needed = np.ones(table.shape, np.bool_)
                for number in range(1, most):
                    needed[:, place + number] = width > number
        place += most
    ends = np.zeros(len(table) + 1, np.int64)
    np.cumsum(np.add.reduce(widths), out=ends[1:])
    return _binary(ends, pa.py_buffer(table if needed is None else table[needed]), kind)


def _binary(ends: Numbers, data: pa.Buffer | None, kind: pa.DataType) -> pa.Array:
    number = np.int64 if pa.types.is_large_binary(kind) else np.int32
    return pa.Array.from_buffers(kind, len(ends) - 1, [None, pa.py_buffer(ends.astype(number)), data])


def _join(pieces: Sequence[pa.Array | pa.Scalar], kind: pa.DataType) -> pa.Array:
    nothing = pa.scalar(b"", kind)
    return pc.binary_join_element_wise(*pieces, nothing, null_handling="replace", null_replacement="")
