"""The four codecs of record batches, written as Java's clients expect them and read from anyone.

C1  A decompressor never makes more than `size_bytes_max` and one block: the limit holds while streaming, not after.
    Whoever takes the pieces of `stream` needs memory for one of them.
C2  Nothing is allocated because a header claims a size; a claim that the bytes at hand cannot fulfil is refused.
C3  Bad input raises ProtocolError and nothing else.

Snappy is written in the framing of the xerial Java library, since Java's clients read no other; librdkafka writes
a bare snappy block, so both are read. Kafka's lz4 is the frame format with independent blocks of 64 KB and
no content size.
"""

import enum
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import cramjam
import lz4.frame

from ottla.wire.errors import ProtocolError

if TYPE_CHECKING:
    import zstandard

Buffer = bytes | bytearray | memoryview

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")

# A snappy copy element makes at most 64 bytes out of 3; a larger claim is a lie.
_SNAPPY_RATIO_MAX = 22

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_RLE_BLOCK = 1

# Kafka's default for compression.lz4.level, which stands for lz4's fast compressor; every other level is of lz4hc.
_LZ4_FAST_LEVEL = 9
_LZ4_HIGH_LEVEL_MIN = 3

_CHUNK_BYTES = 64 * 1024
_HELD_BYTES_MAX = 1 << 20
_FRAMES_MAX = 1024  # in a row; Kafka's clients write one, and each costs time that makes no bytes
_IDLE_MAX = 4
_IDLE_WINDOW_BYTES_MAX = 8 << 20


class Codec(enum.IntEnum):
    """A codec, by its number in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class OversizedError(ProtocolError):
    """Compressed records that grow beyond the size the reader allows."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed; `level` is on Kafka's scale for the codec, None its default."""
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return zlib.compress(data, -1 if level is None else level, wbits=31)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        return _compress_lz4(data, level)
    return _compress_zstd(data, level)


def decompress(codec: Codec, data: Buffer, size_bytes_max: int | None = None) -> bytes:
    """Return what `data` holds, or raise OversizedError once it exceeds `size_bytes_max`."""
    if codec is Codec.NONE:
        _check_size(len(data), size_bytes_max)
        return bytes(data)
    pieces = list(stream(codec, data, size_bytes_max))
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def stream(codec: Codec, data: Buffer, size_bytes_max: int | None = None) -> Iterator[Buffer]:
    """Yield what `data` holds in pieces, some of which may be empty; OversizedError as soon as they exceed the size.

    A piece is at most 128 KB, but for a bare block of snappy, which comes whole: up to 22 times its own size.
    """
    if codec is Codec.NONE:
        _check_size(len(data), size_bytes_max)
        return iter((data,))
    if codec is Codec.GZIP:
        return _stream_gzip(data, size_bytes_max)
    if codec is Codec.SNAPPY:
        return _stream_snappy(data, size_bytes_max)
    if codec is Codec.LZ4:
        return _stream_lz4(data, size_bytes_max)
    return _stream_zstd(data, size_bytes_max)


def compress_stream(
    codec: Codec, pieces: Iterable[Buffer], level: int | None, size_bytes_max: int
) -> bytes | None:
    """Return the pieces compressed as one, or None once that takes more than `size_bytes_max`.

    What is short is compressed as `compress` does it. Of what is long only the result is ever in memory.
    """
    held: list[Buffer] = []
    size = 0
    rest = iter(pieces)
    for piece in rest:
        held.append(piece)
        size += len(piece)
        if size > _HELD_BYTES_MAX:
            break
    else:
        made = compress(codec, b"".join(held), level)
        return made if len(made) <= size_bytes_max else None
    out: list[bytes] = []
    total = 0
    for part in _compressed(codec, chain(held, rest), level):
        total += len(part)
        if total > size_bytes_max:
            return None
        out.append(part)
    return b"".join(out)


def _compressed(codec: Codec, pieces: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    if codec is Codec.NONE:
        yield from map(bytes, pieces)
    elif codec is Codec.SNAPPY:
        yield _XERIAL_HEADER
        for piece in pieces:
            yield from _snappy_blocks(memoryview(piece))
    elif codec is Codec.LZ4:
        frame = lz4.frame.LZ4FrameCompressor(**_lz4_options(level))
        yield frame.begin()
        for piece in pieces:
            yield frame.compress(piece)
        yield frame.flush()
    else:
        compressor = _gzip_compressor(level) if codec is Codec.GZIP else _zstd_compressor(level).compressobj()
        for piece in pieces:
            yield compressor.compress(piece)
        yield compressor.flush()


def _check_size(size_bytes: int, size_bytes_max: int | None) -> None:
    if size_bytes_max is not None and size_bytes > size_bytes_max:
        raise OversizedError(f"records decompress to more than {size_bytes_max} bytes")


def _check_frames(count: int) -> None:
    if count > _FRAMES_MAX:
        raise ProtocolError(f"compressed data of more than {_FRAMES_MAX} streams")


def _gzip_compressor(level: int | None) -> Any:
    return zlib.compressobj(-1 if level is None else level, wbits=31)


def _stream_gzip(data: Buffer, size_bytes_max: int | None) -> Iterator[bytes]:
    view = memoryview(data)
    total = pos = frames = 0
    rest: Buffer = b""
    while True:
        frames += 1
        _check_frames(frames)
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not rest:
                rest = view[pos : pos + _CHUNK_BYTES]
                pos += len(rest)
            try:
                piece = member.decompress(rest, _CHUNK_BYTES)
            except zlib.error as error:
                raise ProtocolError(f"bad gzip data: {error}") from None
            total += len(piece)
            _check_size(total, size_bytes_max)
            rest = member.unconsumed_tail
            if not piece and not member.eof and not rest and pos == len(view):
                raise ProtocolError("gzip data ends early")
            yield piece
        rest = member.unused_data
        if not rest and pos == len(view):
            return


def _compress_snappy(data: Buffer) -> bytes:
    return b"".join((_XERIAL_HEADER, *_snappy_blocks(memoryview(data))))


def _snappy_blocks(view: memoryview) -> Iterator[bytes]:
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block


def _stream_snappy(data: Buffer, size_bytes_max: int | None) -> Iterator[bytes]:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        yield _decompress_snappy_block(view, size_bytes_max)
        return
    total = pos = 0
    while pos < len(view):
        if view[pos : pos + 8] == _XERIAL_MAGIC:
            # Concatenated streams repeat the header in the place of a block's length.
            if len(view) - pos < 16 or _INT32.unpack_from(view, pos + 8)[0] < 1:
                raise ProtocolError("bad header of framed snappy data")
            pos += 16
            continue
        if len(view) - pos < 4:
            raise ProtocolError("framed snappy data ends early")
        size = _INT32.unpack_from(view, pos)[0]
        pos += 4
        if size < 0 or size > len(view) - pos:
            raise ProtocolError(f"framed snappy data claims a block of {size} bytes")
        block = view[pos : pos + size]
        piece = _decompress_snappy_block(block, None if size_bytes_max is None else size_bytes_max - total)
        total += len(piece)
        pos += size
        yield piece


def _decompress_snappy_block(block: memoryview, size_bytes_max: int | None) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_RATIO_MAX:
            raise ProtocolError(f"snappy block of {len(block)} bytes claims to hold {size}")
        _check_size(size, size_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ProtocolError(f"bad snappy data: {error}") from None


def _lz4_options(level: int | None) -> dict[str, Any]:
    fast = level is None or level == _LZ4_FAST_LEVEL
    return {
        "compression_level": 0 if fast or level is None else max(level, _LZ4_HIGH_LEVEL_MIN),
        "block_size": lz4.frame.BLOCKSIZE_MAX64KB,
        "block_linked": False,
    }


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    frame: bytes = lz4.frame.compress(data, store_size=False, **_lz4_options(level))
    return frame


def _stream_lz4(data: Buffer, size_bytes_max: int | None) -> Iterator[bytes]:
    context = lz4.frame.create_decompression_context()
    view = memoryview(data)
    total = pos = frames = 0
    complete = False
    while pos < len(view) or not complete:
        # lz4 allocates what it is asked for.
        try:
            piece, consumed, complete = lz4.frame.decompress_chunk(context, view[pos:], max_length=_CHUNK_BYTES)
        except RuntimeError as error:
            raise ProtocolError(f"bad lz4 data: {error}") from None
        pos += consumed
        total += len(piece)
        frames += complete
        _check_size(total, size_bytes_max)
        _check_frames(frames)
        if not piece and not consumed:
            raise ProtocolError("lz4 data ends early")
        yield piece


def _zstd_compressor(level: int | None) -> "zstandard.ZstdCompressor":
    import zstandard  # its import takes longer than all of wire, and many brokers never see zstd

    return zstandard.ZstdCompressor(level=3 if level is None else level)


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    return _zstd_compressor(level).compress(data)


# A decompressor takes 16 µs to make and serves one stream at a time, so idle ones are kept; pop and append are atomic,
# which makes the list safe between threads. One that has seen a great window is not: it would keep that memory.
_idle_zstd: "list[zstandard.ZstdDecompressor]" = []


def _stream_zstd(data: Buffer, size_bytes_max: int | None) -> Iterator[bytes]:
    import zstandard

    try:
        decompressor = _idle_zstd.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    view = memoryview(data)
    total = pos = frames = window_bytes = 0
    try:
        while pos < len(view) or not pos:
            frames += 1
            _check_frames(frames)
            frame = decompressor.decompressobj()
            parameters, head = _zstd_frame(view, pos)
            window_bytes = max(window_bytes, parameters.window_size)
            for start, end in _zstd_blocks(view, pos, head, parameters.has_checksum):
                piece = frame.decompress(view[start:end])
                total += len(piece)
                _check_size(total, size_bytes_max)
                pos = end
                yield piece
            if not frame.eof:
                raise ProtocolError("zstd data ends early")
    except zstandard.ZstdError as error:
        raise ProtocolError(f"bad zstd data: {error}") from None
    if window_bytes <= _IDLE_WINDOW_BYTES_MAX and len(_idle_zstd) < _IDLE_MAX:
        _idle_zstd.append(decompressor)


def _zstd_frame(view: memoryview, pos: int) -> "tuple[zstandard.FrameParameters, int]":
    """Return what a frame says of itself, and the size of its header."""
    import zstandard

    if view[pos : pos + 4] != _ZSTD_MAGIC:
        raise ProtocolError("zstd data begins with no frame")
    head = view[pos : pos + 18]
    return zstandard.get_frame_parameters(head), zstandard.frame_header_size(head)


def _zstd_blocks(view: memoryview, pos: int, head: int, has_checksum: bool) -> Iterator[tuple[int, int]]:
    """Cut one frame into pieces of at most one block each, since a block makes at most 128 KB however small it is."""
    end = pos + head
    last = False
    while not last:
        header = int.from_bytes(view[end : end + 3], "little")
        last = header & 1 == 1
        stored = 1 if header >> 1 & 3 == _ZSTD_RLE_BLOCK else header >> 3
        end += 3 + stored + (4 if last and has_checksum else 0)
        if end > len(view):
            raise ProtocolError("zstd data ends early")
        yield pos, end
        pos = end
