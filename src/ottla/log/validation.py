"""What a leader checks of a client's batch, in Kafka's order, and how a batch is brought to the topic's form.

`Log.append` asks the common questions itself, in one expression; a batch that is not plain in every respect comes
here, to be refused with the right code, or to be rewritten: the broker's time, another codec. What the records inside
are looked through for is in `inspection`.
"""

import struct

from ottla.log.config import LogConfig
from ottla.log.inspection import Inspected, inspect
from ottla.log.segment import Header
from ottla.wire.batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    Batch,
    assemble,
    crc_ok,
    record_bytes,
    restamp_crc,
)
from ottla.wire.compression import Codec, compress
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import Bytes

_LENGTH = struct.Struct(">i")
_MAGIC_AT = 16
_SIZE_MIN = LOG_OVERHEAD + 14  # of the smallest record of the oldest format
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35


class MalformedBatch(BrokerError):
    """A refusal before a record was looked at: what came is no batch, not one batch, damaged, or too large."""


def split(records: Bytes, *, torn_tail: bool = False) -> list[Header]:
    """Return the headers of the batches in `records`; raise when they do not fill it, but for a `torn_tail`."""
    headers: list[Header] = []
    at = 0
    while at < len(records):
        left = len(records) - at
        size = LOG_OVERHEAD if left < LOG_OVERHEAD else _LENGTH.unpack_from(records, at + 8)[0] + LOG_OVERHEAD
        if left >= LOG_OVERHEAD and size < _SIZE_MIN:
            raise MalformedBatch(ErrorCode.CORRUPT_MESSAGE, f"batch claims {size} bytes")
        if size > left:
            if torn_tail and headers:
                break
            raise _cut(left)
        magic = records[at + _MAGIC_AT]
        if magic in (0, 1):
            raise MalformedBatch(ErrorCode.INVALID_RECORD, f"record format {magic} is no longer taken")
        if magic != MAGIC or size < BATCH_HEADER_SIZE:
            raise MalformedBatch(ErrorCode.CORRUPT_MESSAGE, f"batch of {size} bytes has magic {magic}")
        headers.append(BATCH_HEADER.unpack_from(records, at))
        at += size
    return headers


def _cut(left: int) -> MalformedBatch:
    """Say that a batch is not whole. Kafka sees no batch then, and misses the one there has to be."""
    return MalformedBatch(ErrorCode.INVALID_RECORD, f"the last {left} bytes are no whole batch")


def inspect_client_batch(records: Bytes, config: LogConfig, now_ms: int) -> Inspected | BrokerError:
    """Look through the one batch of a client, however long that takes; this is for a thread."""
    try:
        header = check_client_batch(records, config)
        return inspect(memoryview(records)[: header[1] + LOG_OVERHEAD], header, config, now_ms)
    except BrokerError as error:
        return error


def check_client_batch(records: Bytes, config: LogConfig) -> Header:
    """Return the header of the one batch a client may send, or raise what Kafka would answer to it.

    The records are for `inspect` to look through, which comes next.
    Bytes behind the batch that are no whole batch are none of our business, as they are none of Kafka's.
    """
    headers = split(records, torn_tail=True)
    if len(headers) != 1:
        raise MalformedBatch(
            ErrorCode.INVALID_RECORD, f"a produce request has one batch a partition, not {len(headers)}"
        )
    header = headers[0]
    records = memoryview(records)[: header[1] + LOG_OVERHEAD]
    if header[0] != 0:
        raise MalformedBatch(
            ErrorCode.INVALID_RECORD, f"the base offset of a produced batch is 0, not {header[0]}"
        )
    if len(records) > config.max_message_bytes:
        raise MalformedBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch of {len(records)} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if not crc_ok(records, 0, len(records)):
        raise MalformedBatch(ErrorCode.CORRUPT_MESSAGE, "batch does not match its CRC")
    count, delta, attributes = header[12], header[6], header[5]
    if delta < 0 or count <= 0 or delta + 1 != count:
        raise BrokerError(
            ErrorCode.INVALID_RECORD, f"batch spans {delta + 1} offsets and claims {count} records"
        )
    if attributes & CONTROL:
        raise BrokerError(ErrorCode.INVALID_RECORD, "clients do not write control records")
    if header[9] >= 0 and header[11] < 0:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"producer {header[9]} sent sequence {header[11]}")
    if attributes & CODEC_MASK > Codec.ZSTD:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec has number {attributes & CODEC_MASK}"
        )
    return header


def conform(
    records: bytearray | memoryview, header: Header, config: LogConfig, now_ms: int, inspected: Inspected
) -> bytearray | memoryview:
    """Return the batch with the topic's codec and timestamp type; the same buffer, unless it is compressed anew.

    This changes the buffer, so all that a batch may be refused for has been asked before.
    """
    attributes = header[5] & ~LOG_APPEND_TIME
    max_timestamp = inspected.max_timestamp
    if config.uses_append_time:
        attributes |= LOG_APPEND_TIME
        max_timestamp = now_ms
    if inspected.body is not None:
        assert config.codec is not None
        attributes = attributes & ~CODEC_MASK | config.codec
        remade = Batch(*header)._replace(attributes=attributes, max_timestamp=max_timestamp)
        return assemble(remade, inspected.body)
    if attributes == header[5] and max_timestamp == header[8]:
        return records
    view = memoryview(records)
    view[_ATTRIBUTES_AT : _ATTRIBUTES_AT + 2] = attributes.to_bytes(2, "big", signed=True)
    view[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = max_timestamp.to_bytes(8, "big", signed=True)
    restamp_crc(view, 0, len(view))
    return view


def conform_own(
    records: bytearray | memoryview, header: Header, config: LogConfig, now_ms: int
) -> bytearray | memoryview:
    """Bring a batch of the broker itself to the topic's form; its records are as sound as we are."""
    codec = config.codec
    if codec is None or codec == header[5] & CODEC_MASK or header[5] & CONTROL:
        return conform(records, header, config, now_ms, _own(header, config, None))
    body = record_bytes(records, 0, Batch(*header))
    remade = compress(codec, body, config.compression_level(codec))
    return conform(records, header, config, now_ms, _own(header, config, remade))


def _own(header: Header, config: LogConfig, body: bytes | None) -> Inspected:
    return Inspected(config, header[8], body, header[4], header[1])


def too_large_for_segment(size: int, segment_bytes: int) -> BrokerError:
    """Say that batches do not fit into a segment, however empty."""
    return BrokerError(
        ErrorCode.RECORD_LIST_TOO_LARGE, f"batch of {size} bytes, segment.bytes is {segment_bytes}"
    )
