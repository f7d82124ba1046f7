"""Batches that are small on the wire and large in memory, and batches whose records cannot be read."""

import time
from collections.abc import Iterator

from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, assemble, build_batch
from ottla.wire.compression import Codec, compress, compress_stream
from ottla.wire.record import Record, encode_records, zigzag

MIB = 1 << 20


def header(count: int, codec: Codec) -> Batch:
    """A header that a broker takes, over `count` records."""
    now_ms = int(time.time() * 1000)
    return Batch.parse(build_batch([Record(0, now_ms, b"k", b"v", ())]))._replace(
        record_count=count, last_offset_delta=count - 1, attributes=int(codec)
    )


def over(body: bytes, count: int = 1, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a right header and checksum over anything."""
    return bytes(assemble(header(count, codec), body))


def many_records(count: int, codec: Codec = Codec.ZSTD) -> bytes:
    """The least records, all of one offset: 16 M of them take 11 KB."""
    record = encode_records([Record(0, 0, b"", b"", ())], 0, 0)[0]
    return over(_compressed(codec, record, count), count, codec)


def one_large_record(size: int, codec: Codec) -> bytes:
    """One sound record of zeros."""
    piece = bytes(MIB)
    value = size // MIB * MIB
    # Attributes, timestamp, offset, key and the value's length; then the value, and no headers.
    inner = b"\0\0\0" + zigzag(1) + b"k" + zigzag(value)
    record = zigzag(len(inner) + value + 1) + inner

    def pieces() -> Iterator[bytes]:
        yield record
        for _ in range(value // MIB):
            yield piece
        yield b"\0"

    body = compress_stream(codec, pieces(), None, 1 << 30)
    assert body is not None
    return over(body, 1, codec)


def sound_records(count: int, codec: Codec) -> bytes:
    """As many small records in a row, with keys."""
    records = [Record(number, 0, b"k", b"", ()) for number in range(count)]
    return over(compress(codec, encode_records(records, 0, 0)[0]), count, codec)


def _compressed(codec: Codec, unit: bytes, count: int) -> bytes:
    piece = unit * 65536
    whole, rest = divmod(count, 65536)

    def pieces() -> Iterator[bytes]:
        for _ in range(whole):
            yield piece
        yield unit * rest

    body = compress_stream(codec, pieces(), None, 1 << 30)
    assert body is not None
    return body


# What no producer may store, and no reader can read.
_GZIP = build_batch([Record(0, 1, b"k", bytes(9999), ())], codec=Codec.GZIP)[BATCH_HEADER_SIZE:]
UNREADABLE = {
    "no varint": over(b"\xff" * 40),
    "1,000 records in a byte": over(b"\0", 1000),
    "no zstd": over(b"\xff" * 40, codec=Codec.ZSTD),
    "no gzip": over(b"\xff" * 40, codec=Codec.GZIP),
    "no lz4": over(b"\xff" * 40, codec=Codec.LZ4),
    "no snappy": over(b"\xff" * 40, codec=Codec.SNAPPY),
    "half a gzip": over(bytes(_GZIP[: len(_GZIP) // 2]), codec=Codec.GZIP),
}
