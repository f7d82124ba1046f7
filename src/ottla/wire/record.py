"""Records inside a batch: zigzag varints around key, value and headers.

R1  Reading is bounded by the bytes at hand: a count or length allocates nothing before its bytes are there.
R2  Bad input raises ProtocolError and nothing else.
R3  Reading and writing again gives the same bytes, header names that are no UTF-8 included.

A producer's and a consumer's time goes here, so varints of one and two bytes are read in line and short ones are
written from a table. It looks worse than calls; reading a record of 1 KB takes 1.4 µs with it and 2.1 µs without.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ottla.wire.errors import ProtocolError

Headers = tuple[tuple[str, bytes | None], ...]

_VARINT_SHIFT_MAX = 28
_VARLONG_SHIFT_MAX = 63
_UINT64_MAX = (1 << 64) - 1
_timestamp = itemgetter(1)
_NULL = b"\x01"
_ZERO = b"\x00"


class Record(NamedTuple):
    """One record with its offset in the log and its timestamp in milliseconds."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Span(NamedTuple):
    """Where a record lies in its batch, for those who keep it as it is: `tail` starts behind the timestamp."""

    start: int
    tail: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def zigzag(value: int) -> bytes:
    """Return a signed number as a zigzag varint of up to ten bytes."""
    encoded = (value << 1 if value >= 0 else ~value << 1 | 1) & _UINT64_MAX
    out = bytearray()
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    out.append(encoded)
    return bytes(out)


_SHORT = tuple(zigzag(number) for number in range(2048))
_SHORT_END = len(_SHORT)


def encode_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> tuple[bytes, int]:
    """Return the records in wire form, relative to the two bases, and the largest timestamp among them."""
    short, short_end = _SHORT, _SHORT_END
    parts: list[bytes] = []
    for offset, timestamp, key, value, headers in records:
        number = timestamp - base_timestamp
        time = short[number] if 0 <= number < short_end else zigzag(number)
        number = offset - base_offset
        delta = short[number] if 0 <= number < short_end else zigzag(number)
        if key is None:
            key_size, key = _NULL, b""
        else:
            number = len(key)
            key_size = short[number] if number < short_end else zigzag(number)
        if value is None:
            value_size, value = _NULL, b""
        else:
            number = len(value)
            value_size = short[number] if number < short_end else zigzag(number)
        tail = _encode_headers(headers) if headers else _ZERO
        number = (
            1 + len(time) + len(delta) + len(key_size) + len(key) + len(value_size) + len(value) + len(tail)
        )
        size = short[number] if number < short_end else zigzag(number)
        parts += (size, _ZERO, time, delta, key_size, key, value_size, value, tail)
    return b"".join(parts), max(map(_timestamp, records))


def _encode_headers(headers: Headers) -> bytes:
    parts = [zigzag(len(headers))]
    for name, value in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (zigzag(len(encoded)), encoded)
        parts += (_NULL,) if value is None else (zigzag(len(value)), value)
    return b"".join(parts)


def decode_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time_ms: int | None = None
) -> list[Record]:
    """Return `count` records, which must fill `data`; `append_time_ms` overrides their own timestamps."""
    records: list[Record] = []
    append, new = records.append, tuple.__new__
    end = len(data)
    pos = 0
    timestamp = 0 if append_time_ms is None else append_time_ms
    headers: Headers
    if count < 0:
        raise ProtocolError(f"batch claims {count} records")
    try:
        for _ in range(count):
            number = data[pos]
            pos += 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            stop = pos + (number >> 1)
            if number & 1 or stop > end:
                raise ProtocolError("record ends outside its batch")
            number = data[pos + 1]  # behind the record's attributes, which mean nothing yet
            pos += 2
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number, _VARLONG_SHIFT_MAX)
            if append_time_ms is None:
                timestamp = base_timestamp + (number >> 1 ^ -(number & 1))
            number = data[pos]
            pos += 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            offset = base_offset + (number >> 1 ^ -(number & 1))
            number = data[pos]
            pos += 1
            if number > 0x7F:
                number, pos = _finish_varint(data, pos, number)
            if number & 1:
                key = None
            else:
                start = pos
                pos += number >> 1
                key = data[start:pos]
            number = data[pos]
            pos += 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            if number & 1:
                value = None
            else:
                start = pos
                pos += number >> 1
                value = data[start:pos]
            if data[pos] == 0:
                headers = ()
                pos += 1
            else:
                headers, pos = decode_headers(data, pos, stop)
            if pos != stop:
                raise ProtocolError("record's fields do not fill its size")
            append(new(Record, (offset, timestamp, key, value, headers)))
    except IndexError:
        raise ProtocolError(f"batch ends within its {len(records) + 1}th of {count} records") from None
    if pos != end:
        raise ProtocolError(f"{end - pos} bytes follow the last record of the batch")
    return records


def _finish_varint(data: bytes, pos: int, first: int, shift_max: int = _VARINT_SHIFT_MAX) -> tuple[int, int]:
    """Return the number, still zigzag, whose first byte is taken, and the position behind it."""
    value = first & 0x7F
    shift = 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64_MAX, pos
        shift += 7
        if shift > shift_max:
            raise ProtocolError("varint is too long")


def read_varint(data: bytes, pos: int, shift_max: int = _VARINT_SHIFT_MAX) -> tuple[int, int]:
    """Return the number at `pos`, and the position behind it; IndexError if the bytes end before."""
    number = data[pos]
    pos += 1
    if number > 0x7F:
        number, pos = _finish_varint(data, pos, number, shift_max)
    return number >> 1 ^ -(number & 1), pos


def decode_headers(data: bytes, pos: int, stop: int) -> tuple[Headers, int]:
    """Return the headers whose count lies at `pos` in a record that ends at `stop`, and the position behind them."""
    count, pos = read_varint(data, pos)
    if count < 0 or count > stop - pos:
        raise ProtocolError(f"record claims {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, pos = read_varint(data, pos)
        if size < 0 or size > stop - pos:
            raise ProtocolError(f"record header claims a name of {size} bytes")
        name = data[pos : pos + size].decode("utf-8", "surrogateescape")
        pos += size
        size, pos = read_varint(data, pos)
        if size < 0:
            headers.append((name, None))
            continue
        if size > stop - pos:
            raise ProtocolError(f"record header claims a value of {size} bytes")
        headers.append((name, data[pos : pos + size]))
        pos += size
    return tuple(headers), pos


def walk(data: bytes, count: int) -> Iterator[Span]:
    """Yield where each of `count` records lies in `data`; values and headers are passed over unread."""
    new = tuple.__new__
    data_end = len(data)
    pos = 0
    if count < 0:
        raise ProtocolError(f"batch claims {count} records")
    try:
        for _ in range(count):
            start = pos
            number = data[pos]
            pos += 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            end = pos + (number >> 1)
            if number & 1 or end > data_end:
                raise ProtocolError("record ends outside its batch")
            number = data[pos + 1]
            tail = pos + 2
            if number > 0x7F:
                number, tail = _finish_varint(data, tail, number, _VARLONG_SHIFT_MAX)
            timestamp_delta = number >> 1 ^ -(number & 1)
            number = data[tail]
            pos = tail + 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            offset_delta = number >> 1 ^ -(number & 1)
            number = data[pos]
            pos += 1
            if number > 0x7F:
                number, pos = _finish_varint(data, pos, number)
            key = None
            if not number & 1:
                key_start = pos
                pos += number >> 1
                key = data[key_start:pos]
            number = data[pos]
            pos += 1
            if number > 0x7F:
                more = data[pos]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    pos += 1
                else:
                    number, pos = _finish_varint(data, pos, number)
            # At least the count of headers follows the value.
            if pos + (0 if number & 1 else number >> 1) >= end:
                raise ProtocolError("record's fields do not fit its size")
            yield new(Span, (start, tail, end, timestamp_delta, offset_delta, key, not number & 1))
            pos = end
    except IndexError:
        raise ProtocolError(f"batch ends within its {count} records") from None
    if pos != data_end:
        raise ProtocolError(f"{data_end - pos} bytes follow the last record of the batch")
