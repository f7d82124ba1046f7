"""A look through the records of a client's batch: are they sound, have they keys, are their timestamps in bounds.

I1  Every batch of a client is looked through before it is stored, and none is changed by it. A compressed one is stored
    unseen where a topic has `ottla.check.compressed.records=false` and nothing else asks what is in it.
I2  No object is made of a record and no compressed batch is ever whole in memory: the pieces of the decompressor go
    through `record_walk`, and on into the compressor where the topic has a codec of its own.
I3  What is made of a batch is limited by `ottla.max.decompressed.message.bytes` and `ottla.max.message.records`.
I4  On the loop a look takes no more than a few milliseconds. A batch that would take longer is `Postponed`: whoever has
    a thread calls `inspect` there, and hands the result to `Log.append`.
    The same goes for a request with many batches: what the loop looks through of it is counted in an `Allowance`, and
    once that is used up the others are for the thread.
I5  What was found in a batch is of use for that batch alone: it carries the batch's checksum and length, and an append
    of another batch with it is refused.

The loop takes on 2 MB of plain records, or 128 KB of compressed ones that hold no more than 256 KB and 32,768 records,
or 16 KB to be compressed anew; of a request 4 MB, decompressed bytes included, and 262,144 records.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.segment import Header
from ottla.wire.batch import BATCH_HEADER_SIZE, CODEC_MASK, LOG_APPEND_TIME, NO_TIMESTAMP
from ottla.wire.compression import Codec, OversizedError, compress_stream, stream
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record_walk import INT64_MAX, INT64_MIN, PlainWalk, complaint, walk_of
from ottla.world.disk import Bytes

PLAIN_BYTES_MAX = 2 << 20
_COMPRESSED_BYTES_MAX = 128 << 10
_DECOMPRESSED_BYTES_MAX = 256 << 10
_RECORDS_MAX = 32 << 10
_PIECES_MAX = 64
_RECOMPRESSED_BYTES_MAX = 16 << 10
REQUEST_BYTES_MAX = 4 << 20
REQUEST_RECORDS_MAX = 256 << 10


class PostponedError(Exception):
    """To look through this batch takes longer than the loop may stand still."""


class Allowance:
    """What the loop may still look through of one request."""

    __slots__ = ("_bytes", "_records")

    def __init__(self) -> None:
        self._bytes = REQUEST_BYTES_MAX
        self._records = REQUEST_RECORDS_MAX

    def take(self, size_bytes: int, records: int = 0) -> None:
        """Count what is looked through."""
        self._bytes -= size_bytes
        self._records -= records

    @property
    def is_used_up(self) -> bool:
        """Whether the next batch is for the thread."""
        return self._bytes <= 0 or self._records <= 0


class Inspected(NamedTuple):
    """What a look through a batch has found: it may be stored, under the settings it was made with."""

    config: LogConfig
    max_timestamp: int
    body: bytes | None  # the records in the topic's codec, where that is another
    crc: int  # this and the length: of which batch it speaks (I5)
    length: int

    def check_is_of(self, header: Header) -> None:
        """Raise AssertionError unless this was found in the batch with that header."""
        if self.crc != header[4] or self.length != header[1]:
            raise AssertionError("what was found in one batch is no word about another")


def inspect(
    batch: Bytes,
    header: Header,
    config: LogConfig,
    now_ms: int,
    *,
    on_loop: bool = False,
    allowance: Allowance | None = None,
) -> Inspected:
    """Look through a batch whose header has been checked; BrokerError says why it is refused."""
    attributes = header[5]
    codec = Codec(attributes & CODEC_MASK)
    target = config.codec
    body = memoryview(batch)[BATCH_HEADER_SIZE:]
    is_recompressed = target is not None and target is not codec
    earliest, latest = INT64_MIN, INT64_MAX
    if not config.uses_append_time:
        earliest = max(now_ms - config.message_timestamp_before_max_ms, INT64_MIN)
        latest = min(now_ms + config.message_timestamp_after_max_ms, INT64_MAX)
    is_unseen = codec is not Codec.NONE and not is_recompressed and not looks_into(config)
    if is_unseen and earliest <= header[7] and header[8] <= latest:
        _check_append_time(header, config)
        return Inspected(config, header[8], None, header[4], header[1])
    if codec and header[12] > config.max_message_records:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"compressed batch of {header[12]} records, ottla.max.message.records is {config.max_message_records}",
        )
    if on_loop and _is_long(codec, len(body), header[12], is_recompressed):
        raise PostponedError
    walk = walk_of(
        header[12],
        header[7],
        header[8] if attributes & LOG_APPEND_TIME else None,
        is_dense=True,
        is_keyed=config.is_compacted,
        earliest=earliest,
        latest=latest,
    )
    pieces = _walked(walk, codec, body, config.max_decompressed_message_bytes, on_loop, allowance)
    remade = None
    try:
        if is_recompressed:
            assert target is not None
            room = config.max_message_bytes - BATCH_HEADER_SIZE
            remade = compress_stream(target, pieces, config.compression_level(target), room)
            for _ in pieces:  # the rest, where the result is too large already
                pass
        else:
            for _ in pieces:
                pass
    except OversizedError as error:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{error}, the limit of ottla.max.decompressed.message.bytes",
        ) from None
    except ProtocolError as error:
        raise BrokerError(ErrorCode.INVALID_RECORD, str(error)) from None
    _check_found(walk, header, config, earliest, latest)
    if is_recompressed and remade is None:
        assert target is not None
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch has more bytes as {target.name} than max.message.bytes, {config.max_message_bytes}",
        )
    return Inspected(config, walk.max_time, remade, header[4], header[1])


def looks_into(config: LogConfig) -> bool:
    """Say whether a topic has its compressed batches looked through: it asks for it, or it needs the keys."""
    return config.check_compressed_records or config.is_compacted


def is_plain(
    batch: Bytes,
    header: Header,
    earliest: int,
    latest: int,
    records_max: int,
    bytes_max: int,
    allowance: Allowance | None = None,
) -> bool:
    """Say whether a batch of no special topic may be stored as it is; PostponedError if that takes a thread to say."""
    codec = header[5] & CODEC_MASK
    if not codec:
        if len(batch) > PLAIN_BYTES_MAX:
            raise PostponedError
        walk = walk_of(header[12], header[7], None, is_dense=True, earliest=earliest, latest=latest)
        walk.feed(memoryview(batch)[BATCH_HEADER_SIZE:])
    else:
        body = memoryview(batch)[BATCH_HEADER_SIZE:]
        if header[12] > records_max:
            return False
        if _is_long(Codec(codec), len(body), header[12], is_recompressed=False):
            raise PostponedError
        walk = walk_of(header[12], header[7], None, is_dense=True, earliest=earliest, latest=latest)
        try:
            for _ in _walked(walk, Codec(codec), body, bytes_max, on_loop=True, allowance=allowance):
                pass
        except ProtocolError:
            return False
    return not walk.end() and not walk.bad and walk.max_time == header[8]


def _is_long(codec: Codec, size: int, count: int, is_recompressed: bool) -> bool:
    """Say from its header whether to look through a batch is nothing for the loop."""
    if is_recompressed and size > _RECOMPRESSED_BYTES_MAX:
        return True
    if codec is Codec.NONE:
        return size > PLAIN_BYTES_MAX
    return size > _COMPRESSED_BYTES_MAX or count > _RECORDS_MAX


def is_long(codec: int, size: int, count: int) -> bool:
    """Say whether to look through a batch of a log may take long: what is compressed may hold anything."""
    return size > PLAIN_BYTES_MAX if codec == Codec.NONE else True


def _walked(
    walk: PlainWalk,
    codec: Codec,
    body: memoryview,
    size_bytes_max: int,
    on_loop: bool,
    allowance: Allowance | None = None,
) -> Iterator[Bytes]:
    """Yield the pieces of a body, each once it has been walked through; ProtocolError for what is not sound."""
    is_limited = on_loop and codec is not Codec.NONE and size_bytes_max > _DECOMPRESSED_BYTES_MAX
    limit: int | None = _DECOMPRESSED_BYTES_MAX if is_limited else size_bytes_max
    if codec is Codec.NONE:
        limit = None  # nothing grows there, and max.message.bytes is what limits it
    number = 0
    try:
        for piece in stream(codec, body, limit):
            number += 1
            if allowance is not None and codec is not Codec.NONE:
                allowance.take(len(piece))
            if is_limited and number > _PIECES_MAX:
                raise PostponedError
            if not walk.feed(piece):
                break
            yield piece
    except OversizedError:
        if is_limited:
            raise PostponedError from None
        raise
    if walk.end():
        raise complaint(walk)


def _check_found(walk: PlainWalk, header: Header, config: LogConfig, earliest: int, latest: int) -> None:
    if walk.is_late:
        raise BrokerError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamps from {header[7]} to {header[8]} are not within [{earliest}, {latest}]",
            walk.bad,
        )
    if walk.bad:
        raise BrokerError(
            ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key", walk.bad
        )
    _check_append_time(header, config)


def _check_append_time(header: Header, config: LogConfig) -> None:
    if header[5] & LOG_APPEND_TIME and (config.uses_append_time or header[8] == NO_TIMESTAMP):
        raise BrokerError(
            ErrorCode.INVALID_TIMESTAMP, "producers do not set the timestamp type to LogAppendTime"
        )
