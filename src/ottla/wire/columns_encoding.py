"""Records of many batches written at once, from columns of bytes instead of objects: the way back of `wire.columns`.

What stands before a record's key and before its value are a few varints. Their bytes are worked out for all records
together, by numpy; Arrow then joins the pieces of each record, and so those of all records, one after another.

K5  What comes out is what `wire.record.encode_records` would have written for the same records, with the first
    timestamp of a batch as its base and offsets that count from 0 in each batch.
K6  A key or value that is null is written as null; of headers, no name is.

A number that all records have in common is worked out once: records written together mostly have one time, and often
one size.

Only writers of many records import this; a broker never does (`tests/tidy/test_columns.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]

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


class _Varints(NamedTuple):
    """A varint for each row, or one for all: the number in zigzag, and how many bytes it takes."""

    zigzag: NDArray[np.uint64] | int
    width: Numbers | int
    widest: int

    @classmethod
    def of(cls, numbers: Numbers | int) -> "_Varints":
        if not isinstance(numbers, int) and len(numbers) and numbers[0] == numbers[-1]:
            first = int(numbers[0])
            if (numbers == first).all():
                numbers = first
        if isinstance(numbers, int):
            number = numbers << 1 if numbers >= 0 else ~numbers << 1 | 1
            width = max(1, -(-number.bit_length() // 7))
            return cls(number, width, width)
        zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        widest = max(1, -(-int(zigzag.max(initial=0)).bit_length() // 7))
        if widest == 1:
            return cls(zigzag, 1, 1)
        widths = (zigzag >= 1 << 7).astype(np.int64)
        for shift in range(14, 7 * widest, 7):
            widths += zigzag >= np.uint64(1 << shift)
        widths += 1
        return cls(zigzag, widths, widest)


_ZERO = _Varints(0, 1, 1)


def encode_columns(
    keys: pa.Array | None,
    values: pa.Array,
    headers: pa.Array | None,
    timestamps: Numbers | int,
    starts: Numbers,
) -> Encoded:
    """Return the records in wire form; `starts` are the rows with which batches begin, of which the first is 0.

    Keys and values are columns of binary, all of one type, large or not; `headers` is what `encode_headers` returns.
    Timestamps may be one for all rows.
    """
    count = len(values)
    kind = values.type
    counts = np.diff(starts, append=count)
    bases, latest, deltas = _times(timestamps, starts, counts)
    value_sizes = lengths(values)
    times, numbers = _Varints.of(deltas), _Varints.of(np.arange(count) - np.repeat(starts, counts))
    value_lengths = _Varints.of(value_sizes)
    sizes: Numbers = numbers.width + (1 + times.width + value_lengths.width) + np.maximum(value_sizes, 0)
    sizes += 1 if headers is None else lengths(headers)
    tail = pa.scalar(_NO_HEADERS, kind) if headers is None else headers
    pieces: list[pa.Array | pa.Scalar]
    if keys is None:
        sizes += 1
        front = [_Varints.of(sizes), _ZERO, times, numbers, _Varints.of(_NULL), value_lengths]
        pieces = [_joined(front, count, kind), values, tail]
    else:
        key_sizes = lengths(keys)
        key_lengths = _Varints.of(key_sizes)
        sizes += key_lengths.width + np.maximum(key_sizes, 0)
        front = [_Varints.of(sizes), _ZERO, times, numbers, key_lengths]
        pieces = [_joined(front, count, kind), keys, _joined([value_lengths], count, kind), values, tail]
    records = _join(pieces, kind)
    return Encoded(memoryview(records.buffers()[2]), places(records)[np.append(starts, count)], bases, latest)


def _times(
    timestamps: Numbers | int, starts: Numbers, counts: Numbers
) -> tuple[Numbers, Numbers, Numbers | int]:
    """The first and the latest time of each batch, and what each record's time is beyond the first."""
    if isinstance(timestamps, int):
        bases = np.full(len(starts), timestamps, np.int64)
        return bases, bases, 0
    bases = timestamps[starts]
    return bases, np.maximum.reduceat(timestamps, starts), timestamps - np.repeat(bases, counts)


def encode_headers(headers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the headers of each row in wire form, from a column of lists of structs of a name and a value."""
    counts = np.asarray(pc.fill_null(pc.list_value_length(headers), 0)).astype(np.int64)
    firsts = np.zeros(len(headers) + 1, np.int64)
    np.cumsum(counts, out=firsts[1:])
    flat = headers.flatten()
    names, values = flat.field(0).cast(kind), flat.field(1).cast(kind)
    pieces = [
        _joined([_Varints.of(lengths(names))], len(flat), kind),
        names,
        _joined([_Varints.of(lengths(values))], len(flat), kind),
        values,
    ]
    each = _join(pieces, kind)
    # What the headers of one row have become lies together: a row's piece is from its first to its last.
    together = _binary(places(each)[firsts], each.buffers()[2], kind)
    return _join([_joined([_Varints.of(counts)], len(headers), kind), together], kind)


def lengths(column: pa.Array) -> Numbers:
    """Return how long each of a column of bytes is, -1 where it is null."""
    sizes = np.diff(places(column))
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


def _joined(columns: Sequence[_Varints], count: int, kind: pa.DataType) -> pa.Array:
    """A column of bytes: in each of `count` rows the varints of that row, one after another."""
    # Each has room for the widest of its column; what a row does not need is taken out at the end.
    table = np.empty((count, sum(column.widest for column in columns)), np.uint8)
    needed: NDArray[np.bool_] | None = None
    sizes: Numbers | int = 0
    place = 0
    for zigzag, width, widest in columns:
        sizes = sizes + width
        for number in range(widest):
            left = zigzag >> 7 * number
            if isinstance(width, int):
                table[:, place + number] = left & 0x7F | (0x80 if number + 1 < widest else 0)
            else:
                more = (width > number + 1).view(np.uint8) << 7
                table[:, place + number] = (left & 0x7F).astype(np.uint8) | more  # type: ignore[union-attr]
                if number:
                    if needed is None:
                        needed = np.ones(table.shape, np.bool_)
                    needed[:, place + number] = width > number
        place += widest
    ends = np.zeros(count + 1, np.int64)
    if isinstance(sizes, int):
        ends[1:] = np.arange(sizes, sizes * count + 1, sizes)
    else:
        np.cumsum(sizes, out=ends[1:])
    return _binary(ends, pa.py_buffer(table if needed is None else table[needed]), kind)


def _binary(ends: Numbers, data: pa.Buffer | None, kind: pa.DataType) -> pa.Array:
    number = np.int64 if pa.types.is_large_binary(kind) else np.int32
    return pa.Array.from_buffers(kind, len(ends) - 1, [None, pa.py_buffer(ends.astype(number)), data])


def _join(pieces: Sequence[pa.Array | pa.Scalar], kind: pa.DataType) -> pa.Array:
    nothing = pa.scalar(b"", kind)
    return pc.binary_join_element_wise(*pieces, nothing, null_handling="replace", null_replacement="")
