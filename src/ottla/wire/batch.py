"""Record batches of magic 2: a header of 61 bytes, which is all that a broker looks at, and the records.

B1  Base offset and leader epoch lie outside the CRC, so stamping them needs no second look at the bytes.
B2  The CRC is CRC-32C over everything behind it; whoever changes those bytes calls `restamp_crc`.
B3  Magic 0 and 1 are refused with UNSUPPORTED_FOR_MESSAGE_FORMAT; whatever else is wrong is a ProtocolError.

Code on the produce path unpacks `BATCH_HEADER` into a tuple itself; `Batch` is the same tuple with names.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from ottla.wire.compression import Buffer, Codec, compress, decompress
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record import Record, decode_records, encode_records

BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_HEADER_SIZE = 61
LOG_OVERHEAD = 12
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1
SEQUENCE_MAX = 0x7FFF_FFFF

_BATCH_LENGTH_MIN = BATCH_HEADER_SIZE - LOG_OVERHEAD
_CONTROL_BYTES_MAX = 1 << 16
_LEADER_EPOCH_AT = 12
_CRC_AT = 17
CRC_FROM = 21
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_unpack_header = BATCH_HEADER.unpack_from


class Batch(NamedTuple):
    """The header of a record batch."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, buf: Buffer, pos: int = 0) -> "Batch":
        """Read the header at `pos`; the records behind it need not be there."""
        try:
            fields = _unpack_header(buf, pos)
        except struct.error:
            raise ProtocolError(f"no batch header in {len(buf) - pos} bytes") from None
        if fields[3] != MAGIC:
            raise _wrong_magic(fields[3])
        if fields[1] < _BATCH_LENGTH_MIN:
            raise ProtocolError(f"batch claims a length of {fields[1]} bytes")
        return tuple.__new__(cls, fields)

    @property
    def size(self) -> int:
        """The whole batch in bytes."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record, inclusive, even if compaction took that record away."""
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        """The offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The producer's sequence number of the last record, or -1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset_delta & SEQUENCE_MAX

    @property
    def codec(self) -> Codec:
        """How the records are compressed."""
        try:
            return Codec(self.attributes & CODEC_MASK)
        except ValueError:
            raise ProtocolError(f"batch names unknown codec {self.attributes & CODEC_MASK}") from None

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction, markers included."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the records are for brokers and clients, not for applications."""
        return self.attributes & CONTROL != 0

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the broker's time and counts for all records."""
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` says when the cleaner may drop tombstones and markers (KIP-534)."""
        return self.attributes & DELETE_HORIZON != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may drop tombstones and markers, or None before the first cleaning."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def _wrong_magic(magic: int) -> Exception:
    if magic in (0, 1):
        return BrokerError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"record format {magic} is no longer supported"
        )
    return ProtocolError(f"batch has unknown magic {magic}")


def scan(buf: Buffer, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Batch]]:
    """Yield each whole batch with its position; a batch that is cut off at the end is not yielded."""
    stop = len(buf) if end is None else end
    pos = start
    while stop - pos >= BATCH_HEADER_SIZE:
        fields = _unpack_header(buf, pos)
        if fields[3] != MAGIC or fields[1] < _BATCH_LENGTH_MIN:
            Batch.parse(buf, pos)  # which says what is wrong with it
        following = pos + fields[1] + LOG_OVERHEAD
        if following > stop:
            return
        yield pos, tuple.__new__(Batch, fields)
        pos = following


def crc_ok(buf: Buffer, pos: int, size: int) -> bool:
    """Say whether the batch of `size` bytes at `pos` is what its producer summed up."""
    return bool(
        crc32c(memoryview(buf)[pos + CRC_FROM : pos + size]) == _UINT32.unpack_from(buf, pos + _CRC_AT)[0]
    )


def stamp(buf: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Write the two fields a leader owns, in place."""
    _INT64.pack_into(buf, pos, base_offset)
    _INT32.pack_into(buf, pos + _LEADER_EPOCH_AT, leader_epoch)


def restamp_crc(buf: bytearray | memoryview, pos: int, size: int) -> None:
    """Write the CRC of a batch whose other bytes were changed."""
    _UINT32.pack_into(buf, pos + _CRC_AT, crc32c(memoryview(buf)[pos + CRC_FROM : pos + size]))


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """Return a batch of at least one record, whose offsets grow from `base_offset`."""
    if not records:
        raise ValueError("a batch is built from at least one record")
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    body, max_timestamp = encode_records(records, base_offset, base_timestamp)
    attributes = int(codec)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
    if codec:
        body = compress(codec, body, level)
    return assemble(
        Batch(
            base_offset,
            0,
            leader_epoch,
            MAGIC,
            0,
            attributes,
            records[-1].offset - base_offset,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        ),
        body,
    )


def assemble(header: Batch, body: Buffer) -> bytearray:
    """Return a batch with this header over records in wire form; length and CRC are worked out here."""
    size = BATCH_HEADER_SIZE + len(body)
    out = bytearray(BATCH_HEADER_SIZE)
    BATCH_HEADER.pack_into(out, 0, header.base_offset, size - LOG_OVERHEAD, *header[2:])
    out += body
    restamp_crc(out, 0, size)
    return out


def record_bytes(buf: Buffer, pos: int, batch: Batch, size_bytes_max: int | None = None) -> bytes:
    """Return the decompressed records of the batch at `pos`, still in wire form."""
    size = batch.batch_length + LOG_OVERHEAD
    if size > len(buf) - pos:
        raise ProtocolError(f"batch of {size} bytes is cut off after {len(buf) - pos}")
    body = memoryview(buf)[pos + BATCH_HEADER_SIZE : pos + size]
    if batch.record_count == 0 and not body:
        return b""  # what compaction leaves of a compressed batch is no valid stream of its codec
    return decompress(batch.codec, body, size_bytes_max)


def read_control_batch(buf: Buffer, pos: int = 0) -> list[Record]:
    """Return the records of a control batch, of which there are few and short ones, or ProtocolError says otherwise."""
    return read_records(buf, pos, size_bytes_max=_CONTROL_BYTES_MAX)


def read_records(buf: Buffer, pos: int = 0, *, size_bytes_max: int | None = None) -> list[Record]:
    """Return the records of the batch at `pos`; the CRC is the caller's to check."""
    batch = Batch.parse(buf, pos)
    return decode_records(
        record_bytes(buf, pos, batch, size_bytes_max),
        batch.record_count,
        batch.base_offset,
        batch.base_timestamp,
        batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None,
    )
