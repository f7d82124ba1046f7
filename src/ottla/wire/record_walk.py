"""A pass over the records of a batch that makes no object of any: are they sound, and what are their timestamps.

A broker makes it over every batch of a client, and over batches in its log that it searches by time. The batch comes in
pieces, as a decompressor makes them, so that the pass needs no memory. Where there was a C compiler when Ottla was
installed, `_walk.h` makes it; `PlainWalk` here is its twin.

V1  Nothing is kept but where the pass stands, so a batch may come in pieces of any size.
V3  A pass that has found a fault, or the record it looked for, reads no further.
V4  Timestamps are sums that wrap at 64 bits, as in Java.
"""

import enum
from typing import TYPE_CHECKING

from ottla.wire.errors import ProtocolError

try:
    from ottla.wire import _records
except ImportError:  # no compiler when Ottla was installed
    _records = None  # type: ignore[assignment]

Buffer = bytes | bytearray | memoryview

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1
BAD_RECORDS_MAX = 100  # that are named
_NO_TIMESTAMP = -1
_VARINT_SHIFT_MAX = 28
_VARLONG_SHIFT_MAX = 63
_UINT64_MAX = (1 << 64) - 1
_INT64_SIGN = 1 << 63

_SIZE, _ATTRIBUTES, _TIME, _OFFSET, _KEY, _VALUE, _HEADERS, _NAME, _CONTENT, _END = range(10)


class Fault(enum.IntEnum):
    """What is wrong with the records of a batch."""

    SOUND = 0
    LONG_NUMBER = 1
    BAD_SIZE = 2
    BAD_FIELDS = 3
    BAD_HEADERS = 4
    BAD_OFFSET = 5
    BYTES_LEFT = 6
    RECORDS_MISSING = 7


_WORDS = {
    Fault.LONG_NUMBER: "has a number of too many bytes",
    Fault.BAD_SIZE: "has a negative size",
    Fault.BAD_FIELDS: "has fields that do not fill its size",
    Fault.BAD_HEADERS: "has headers that do not fit it",
    Fault.BAD_OFFSET: "is not the next by its offset",
    Fault.BYTES_LEFT: "should be the last, yet bytes follow",
    Fault.RECORDS_MISSING: "is missing",
}


class PlainWalk:
    """One pass; `feed` pieces until it returns False or there are no more, then `end`."""

    __slots__ = (
        "_append_time",
        "_base_time",
        "_count",
        "_delta",
        "_earliest",
        "_field",
        "_find_delta",
        "_find_high",
        "_find_low",
        "_headers",
        "_is_dense",
        "_is_keyed",
        "_keyless",
        "_latest",
        "_left",
        "_shift",
        "_skip",
        "_time",
        "_value",
        "bad",
        "fault",
        "found",
        "found_delta",
        "found_time",
        "index",
        "is_late",
        "max_time",
    )

    def __init__(
        self,
        count: int,
        base_time: int,
        append_time: int | None,
        is_dense: bool,
        is_keyed: bool,
        earliest: int,
        latest: int,
        find_low: int,
        find_high: int,
        find_delta: int,
    ) -> None:
        self._count = count
        self._base_time = base_time
        self._append_time = append_time
        self._is_dense = is_dense
        self._is_keyed = is_keyed
        self._earliest = earliest
        self._latest = latest
        self._find_low = find_low
        self._find_high = find_high
        self._find_delta = find_delta
        self.fault = 0  # a Fault
        self.index = 0  # how many records are whole
        self.max_time = _NO_TIMESTAMP
        self.bad: tuple[int, ...] = ()  # which records have no key, or a timestamp out of bounds: the first of them
        self.is_late = False  # whether one of them is out of bounds
        self.found = False
        self.found_time = self.found_delta = -1
        self._field = _SIZE
        self._shift = self._value = self._left = self._skip = self._headers = self._time = self._delta = 0
        self._keyless = False

    def feed(self, piece: Buffer) -> bool:
        """Go on with the next piece; False once there is no need for more."""
        at, end = 0, len(piece)
        while not self.fault and not self.found:
            if self._skip:
                here = min(end - at, self._skip)
                at += here
                self._skip -= here
                if self._skip:
                    return True
            if self._field == _END:
                self._take_record()
                continue
            if at == end:
                return True
            if self.index == self._count:
                self.fault = Fault.BYTES_LEFT.value
                break
            byte = piece[at]
            at += 1
            if self._field != _SIZE:
                self._left -= 1
                if self._left < 0:
                    self.fault = Fault.BAD_FIELDS.value
                    break
            if self._field == _ATTRIBUTES:
                self._field = _TIME
                continue
            self._value |= (byte & 0x7F) << self._shift
            if byte < 0x80:
                number, self._value, self._shift = self._value & _UINT64_MAX, 0, 0
                self._take_number(number)
            else:
                self._shift += 7
                if self._shift > (_VARLONG_SHIFT_MAX if self._field == _TIME else _VARINT_SHIFT_MAX):
                    self.fault = Fault.LONG_NUMBER.value
        return False

    def end(self) -> int:
        """Say that no more comes, and return the fault."""
        is_whole = self.index == self._count and self._field == _SIZE and not self._shift
        if not self.fault and not self.found and not is_whole:
            self.fault = Fault.RECORDS_MISSING.value
        return self.fault

    def _take_record(self) -> None:
        if self._left:
            self.fault = Fault.BAD_FIELDS.value
            return
        time = self._time if self._append_time is None else self._append_time
        late = time != _NO_TIMESTAMP and not self._earliest <= time <= self._latest
        keyless = self._is_keyed and self._keyless
        if keyless or late:
            if len(self.bad) < BAD_RECORDS_MAX:
                self.bad += (self.index,)
            self.is_late |= not keyless
        self.max_time = max(self.max_time, time)
        if self._find_low <= time <= self._find_high and self._delta >= self._find_delta:
            self.found, self.found_time, self.found_delta = True, time, self._delta
        self.index += 1
        self._field = _SIZE

    def _take_number(self, number: int) -> None:
        field = self._field
        if field == _SIZE:
            if number & 1:
                self.fault = Fault.BAD_SIZE.value
            self._left = number >> 1
            self._field = _ATTRIBUTES
        elif field == _TIME:
            self._time = _wrapped(self._base_time + (number >> 1 ^ -(number & 1)))
            self._field = _OFFSET
        elif field == _OFFSET:
            self._delta = number >> 1 ^ -(number & 1)
            if self._is_dense and self._delta != self.index:
                self.fault = Fault.BAD_OFFSET.value
            self._field = _KEY
        elif field == _KEY:
            self._keyless = number & 1 == 1
            self._pass_over(number, _VALUE)
        elif field == _VALUE:
            self._pass_over(number, _HEADERS)
        elif field == _HEADERS:
            self._headers = number >> 1
            if number & 1 or self._headers > self._left:
                self.fault = Fault.BAD_HEADERS.value
            self._field = _NAME if self._headers else _END
        elif field == _NAME:
            if number & 1:
                self.fault = Fault.BAD_HEADERS.value
            else:
                self._pass_over(number, _CONTENT)
        else:
            self._headers -= 1
            self._pass_over(number, _NAME if self._headers else _END)

    def _pass_over(self, number: int, following: int) -> None:
        size = 0 if number & 1 else number >> 1
        if size > self._left:
            self.fault = Fault.BAD_FIELDS.value
            return
        self._left -= size
        self._skip = size
        self._field = following


def _wrapped(number: int) -> int:
    number &= _UINT64_MAX
    return number - (1 << 64) if number & _INT64_SIGN else number


if TYPE_CHECKING or _records is None:
    Walk = PlainWalk
else:
    Walk = _records.Walk


def walk_of(
    count: int,
    base_time: int,
    append_time: int | None,
    *,
    is_dense: bool = False,
    is_keyed: bool = False,
    earliest: int = INT64_MIN,
    latest: int = INT64_MAX,
) -> PlainWalk:
    """Return a pass over all records; dense ones have their number in the batch as their offset."""
    return Walk(count, base_time, append_time, is_dense, is_keyed, earliest, latest, 1, 0, 0)


def search_of(
    count: int, base_time: int, append_time: int | None, low: int, high: int, offset_delta: int
) -> PlainWalk:
    """Return a pass up to the first record with a timestamp from `low` to `high`, from a relative offset on."""
    return Walk(
        count, base_time, append_time, False, False, INT64_MIN, INT64_MAX, low, high, max(offset_delta, INT64_MIN)
    )


def complaint(walk: PlainWalk) -> ProtocolError:
    """Say what is wrong with the records."""
    return ProtocolError(f"record {walk.index} of its batch {_WORDS[Fault(walk.fault)]}")
