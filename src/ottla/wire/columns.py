"""Records of many batches read at once, as columns of numbers instead of objects.

Where there was a C compiler when Ottla was installed, `_records.c` does it in one pass. Else: a batch is a chain, each
record begins with its size, and only who has read the sizes before knows where it lies. So there is one loop in Python,
which does nothing but add up sizes (`_locate`); every other field is then read for all records together, by numpy.

K1  What comes out is what `wire.record.decode_records` would have read, and what that refuses is refused here. Offsets
    and timestamps are numbers of 64 bits, as they are in Java; nonsense wraps around.
K2  Bad input raises ProtocolError and nothing else.
K3  A count allocates nothing before there are as many bytes as so many records take at least.
K4  A position only ever grows on its way through a record, and in the end it must be where the next record begins. So
    a length that leads out of its record needs no check of its own: whatever is read there is thrown away.

Records of one length lie in steps of that length. A guess of the step is proven for many records at once: if a record
lies here and as long a one a step further on, then one lies two steps further on too (`_steps`).

Only readers of many records import this; a broker never does (`tests/tidy/test_columns.py`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.compression import Buffer
from ottla.wire.errors import ProtocolError
from ottla.wire.record import read_varint

try:
    from ottla.wire import _records
except ImportError:  # no compiler when Ottla was installed
    _records = None  # type: ignore[assignment]

Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
_Raw: TypeAlias = NDArray[np.uint8]
_Zigzag: TypeAlias = NDArray[np.uint64]

_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10
# A size of one byte, attributes, and no less than a byte for each of five fields.
_RECORD_BYTES_MIN = 7
_HEADER_BYTES_MIN = 2
# Below so many records of one length a guess does not pay.
_STEPS_MIN = 32
# A guess is first tried on so many records, which is about what a batch of 16 KB holds.
_WINDOW = 256
# A guess that fails takes as long as a dozen records, so at last one is made after so many.
_PAUSE_MAX = 4096
# Below so many records a round of numpy over their headers does not pay.
_ROUND_MIN = 64
# What a size's only byte, or the first and second of its two bytes, contribute to the way to the next record. A look
# into a list is what Python does fastest: 100 ns a record with these, 130 with shifts.
_ALONE = [1 + (byte >> 1) for byte in range(0x80)]
_FIRST = [2 + ((byte & 0x7F) >> 1) for byte in range(0x100)]
_SECOND = [byte << 6 for byte in range(0x80)]


class Columns(NamedTuple):
    """Fields of all records, in their order, as numbers and as places in `data`, which holds all batches' records.

    A key or value that is null lies nowhere: its start is its end. Of headers there is only a place and whether there
    are any: `decode_headers` proves and reads them.
    """

    data: bytes
    offsets: Numbers
    timestamps: Numbers
    key_starts: Numbers
    key_ends: Numbers
    key_nulls: Flags
    value_starts: Numbers
    value_ends: Numbers
    value_nulls: Flags
    header_starts: Numbers
    header_flags: Flags
    ends: Numbers


class HeaderColumns(NamedTuple):
    """Headers of all records, in their order; `counts` says how many of them each record has."""

    counts: Numbers
    name_starts: Numbers
    name_ends: Numbers
    value_starts: Numbers
    value_ends: Numbers
    value_nulls: Flags


def decode_columns(batches: Sequence[Batch], bodies: Sequence[Buffer], *, payloads: bool = True) -> Columns:
    """Return the records of these batches, whose bodies are decompressed.

    Without `payloads` keys, values and headers are not looked at, and their columns are empty.
    """
    counts = [batch.record_count for batch in batches]
    data = b"".join(bodies)
    found = _compiled_columns(data, batches, bodies, counts, payloads)
    if found is not None:
        return found
    lengths = _locate(data, map(len, bodies), counts)
    ends = lengths.cumsum()
    starts = ends - lengths
    raw = np.frombuffer(data, np.uint8)
    try:
        sizes, pos = _varints(raw, starts)
        if (sizes & 1).any():
            raise ProtocolError("record has a size below zero")
        pos += 1  # the attributes, which mean nothing yet
        timestamps, pos = _varints(raw, pos, _VARLONG_BYTES_MAX)
        offsets, pos = _varints(raw, pos)
        if not payloads:
            pos = pos[:0]
        key_starts, key_ends, key_nulls = _payloads(raw, pos)
        value_starts, value_ends, value_nulls = _payloads(raw, key_ends)
        header_flags = raw.take(value_ends) != 0
    except IndexError:
        raise ProtocolError("batch ends within a record") from None
    # Where there are headers, `decode_headers` has the same question.
    if payloads and ((value_ends + 1 != ends) & ~header_flags).any():
        raise ProtocolError("record's fields do not fill its size")
    return Columns(
        data,
        _unzigzag(offsets) + _spread([batch.base_offset for batch in batches], counts),
        _times(_unzigzag(timestamps), batches, counts),
        key_starts,
        key_ends,
        key_nulls,
        value_starts,
        value_ends,
        value_nulls,
        value_ends,
        header_flags,
        ends,
    )


def _compiled_columns(
    data: bytes, batches: Sequence[Batch], bodies: Sequence[Buffer], counts: Sequence[int], payloads: bool
) -> Columns | None:
    """The columns by the compiled reader; None if it is not there, or not all is sound."""
    if _records is None:
        return None
    total, at, start = sum(counts), 0, 0
    if min(counts, default=0) < 0 or total * _RECORD_BYTES_MIN > len(data):
        return None
    numbers = np.empty((8, total), np.int64)
    flags = np.empty((3, total), np.bool_)
    fill = _records.columns
    for batch, body, count in zip(batches, bodies, counts, strict=True):
        size = len(body)
        append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
        if not fill(
            numbers, flags, at, data, start, size, count, batch.base_offset, batch.base_timestamp, append_time
        ):
            return None
        at += count
        start += size
    offsets, timestamps, *places, ends = numbers
    key_starts, key_ends, value_starts, value_ends, headers = places if payloads else [ends[:0]] * 5
    no_key, no_value, has_headers = flags if payloads else flags[:, :0]
    return Columns(
        data,
        offsets,
        timestamps,
        key_starts,
        key_ends,
        no_key,
        value_starts,
        value_ends,
        no_value,
        headers,
        has_headers,
        ends,
    )


def _locate(data: bytes, sizes: Iterable[int], counts: Sequence[int]) -> Numbers:
    """Return how long each record is, in batches of these sizes and counts of records, which follow one another."""
    # Runs of records, how long each of one is and how many there are; those of no one length have a length of their own
    # in `lengths`, and 0 here.
    steps: list[int] = []
    runs: list[int] = []
    lengths: list[int] = []
    append = lengths.append
    alone, first, second = _ALONE, _FIRST, _SECOND
    pos = end = wait = same = step = 0
    pause = _STEPS_MIN
    ahead = sum(counts)
    try:
        for size, count in zip(sizes, counts, strict=True):
            end += size
            if count < 0 or count * _RECORD_BYTES_MIN > size:
                raise ProtocolError(f"batch claims {count} records in {size} bytes")
            left = count
            ahead -= count
            while left:
                if same:
                    turns = min(left, same)
                    steps.append(step)
                    runs.append(turns)
                    pos += turns * step
                    left -= turns
                    same -= turns
                    continue
                turns = left
                if wait:
                    turns = min(left, wait)
                    wait -= turns
                elif left + ahead >= _STEPS_MIN:
                    # A run may go on through the batches that follow: there is nothing between them.
                    same, step = _steps(data, pos, len(data), left + ahead)
                    if same:
                        pause = _STEPS_MIN
                        continue
                    # Lengths differ here, so the next guess can wait, and the one after it twice as long.
                    wait = pause
                    pause = min(2 * pause, _PAUSE_MAX)
                    continue
                left -= turns
                steps.append(0)
                runs.append(turns)
                for _ in range(turns):
                    number = data[pos]
                    if number < 0x80:
                        length = alone[number]
                    else:
                        more = data[pos + 1]
                        if more < 0x80:
                            length = first[number] + second[more]
                        else:
                            number, width = _size(data, pos)
                            length = number + width
                    append(length)
                    pos += length
            if pos != end:
                raise ProtocolError(f"{count} records do not fill the {size} bytes of their batch")
    except IndexError:
        raise ProtocolError("batch ends within its records") from None
    # From an iterator of known length: a list is looked through for what it may hold, which takes longer than all else.
    each = np.fromiter(lengths, np.int64, len(lengths))
    if not any(steps):
        return each
    found_steps = np.fromiter(steps, np.int64, len(steps))
    every = np.repeat(found_steps, runs)
    if lengths:
        every[every == 0] = each
    return every


def _steps(data: bytes, pos: int, end: int, count: int) -> tuple[int, int]:
    """How many records from here on, of `count`, are as long as the first, if many are; and how long that is."""
    size, width = _size(data, pos)
    step = size + width
    window = _WINDOW
    while True:
        window = min(window, count)
        stop = min(end, pos + step * window)
        found = window
        for at in range(pos, pos + width):
            column = data[at:stop:step]
            found = min(found, len(column) - len(column.lstrip(data[at : at + 1])))
            stop = pos + step * found
        if found < window or window == count:
            return (found, step) if found >= _STEPS_MIN else (0, 0)
        window *= 8


def _size(data: bytes, pos: int) -> tuple[int, int]:
    """The size of the record at `pos`, without a look at its sign, and how many bytes that number takes."""
    value = 0
    for width in range(_VARINT_BYTES_MAX):
        byte = data[pos + width]
        value |= (byte & 0x7F) << 7 * width
        if byte < 0x80:
            return value >> 1, width + 1
    raise ProtocolError("varint is too long")


def _varints(raw: _Raw, pos: Numbers, bytes_max: int = _VARINT_BYTES_MAX) -> tuple[_Zigzag, Numbers]:
    """The numbers at these positions, still zigzag, and the positions behind them."""
    first = raw.take(pos)
    pos = pos + 1
    longer = first > 0x7F
    count = np.count_nonzero(longer)
    if not count:
        return first.astype(np.uint64), pos
    value = (first & 0x7F).astype(np.uint64)
    if count * 4 > len(first):
        # Most go on: all are asked for a second byte, and those which have none multiply it by zero. One that would
        # lie behind the end is made up; the position goes on nevertheless, and fails at the next field.
        byte = raw.take(pos, mode="clip")
        value |= ((byte & 0x7F) * longer).astype(np.uint64) << 7
        pos += longer
        rest = np.flatnonzero(longer & (byte > 0x7F))
        width = 2
    else:
        rest = np.flatnonzero(longer)
        width = 1
    while rest.size:
        if width == bytes_max:
            raise ProtocolError("varint is too long")
        byte = raw.take(pos[rest])
        pos[rest] += 1
        value[rest] |= (byte & 0x7F).astype(np.uint64) << 7 * width
        rest = rest[byte > 0x7F]
        width += 1
    return value, pos


def _unzigzag(number: _Zigzag) -> Numbers:
    return ((number >> 1) ^ -(number & 1)).view(np.int64)


def _payloads(raw: _Raw, pos: Numbers) -> tuple[Numbers, Numbers, Flags]:
    """Where the keys or values lie whose lengths are at `pos`: starts, ends, and which are null."""
    number, starts = _varints(raw, pos)
    nulls = (number & 1).astype(np.bool_)
    sizes = (number >> 1).view(np.int64)
    sizes[nulls] = 0
    return starts, starts + sizes, nulls


def _times(deltas: Numbers, batches: Sequence[Batch], counts: Sequence[int]) -> Numbers:
    fixed = [batch.attributes & LOG_APPEND_TIME != 0 for batch in batches]
    if any(fixed):
        deltas[np.repeat(fixed, counts)] = 0
    bases = [
        batch.max_timestamp if its else batch.base_timestamp
        for batch, its in zip(batches, fixed, strict=True)
    ]
    return deltas + _spread(bases, counts)


def _spread(numbers: Sequence[int], counts: Sequence[int]) -> Numbers | int:
    """A batch's number for each of its records; one number is enough for one batch."""
    return numbers[0] if len(numbers) == 1 else np.repeat(np.array(numbers, np.int64), counts)


def decode_headers(columns: Columns) -> HeaderColumns:
    """Return the headers of all records: the first of each is read, then the second of each, and so on.

    The few records that have many more than most are read one by one in the end.
    """
    data = columns.data
    raw = np.frombuffer(data, np.uint8)
    who = np.flatnonzero(columns.header_flags)
    ends = columns.ends[who]
    try:
        claims, pos = _varints(raw, columns.header_starts[who])
        left = (claims >> 1).view(np.int64)
        if (claims & 1).any() or (left * _HEADER_BYTES_MIN > ends - pos).any():
            raise ProtocolError("record claims more headers than it has room for")
        counts = np.zeros(len(columns.ends), np.int64)
        counts[who] = left
        slots = np.cumsum(counts)[who] - left
        table = np.empty((5, counts.sum()), np.int64)
        while True:
            going = left > 0
            if (pos[~going] != ends[~going]).any():
                raise ProtocolError("record's headers do not fill its size")
            pos, ends, slots, left = pos[going], ends[going], slots[going], left[going]
            if len(left) < _ROUND_MIN:
                break
            names, name_ends, nameless = _payloads(raw, pos)
            if nameless.any():
                raise ProtocolError("record header has no name")
            values, pos, nulls = _payloads(raw, name_ends)
            table[:, slots] = names, name_ends, values, pos, nulls
            slots += 1
            left -= 1
        for place in zip(pos.tolist(), ends.tolist(), slots.tolist(), left.tolist(), strict=True):
            _walk_headers(data, *place, table)
    except IndexError:
        raise ProtocolError("batch ends within a record's headers") from None
    return HeaderColumns(counts, table[0], table[1], table[2], table[3], table[4].astype(np.bool_))


def _walk_headers(data: bytes, pos: int, end: int, slot: int, count: int, table: Numbers) -> None:
    """Note where `count` headers of one record lie."""
    found: list[tuple[int, int, int, int, int]] = []
    for _ in range(count):
        size, pos = read_varint(data, pos)
        if size < 0:
            raise ProtocolError("record header has no name")
        name, name_end = pos, pos + size
        size, pos = read_varint(data, name_end)
        value, pos = pos, pos + max(size, 0)
        found.append((name, name_end, value, pos, size < 0))
    if pos != end:
        raise ProtocolError("record's headers do not fill its size")
    table[:, slot : slot + count] = np.array(found, np.int64).T
