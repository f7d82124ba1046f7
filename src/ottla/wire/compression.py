"""The four codecs of record batches, written as Java's clients expect them and read from anyone.

C1  A decompressor never makes more than `size_bytes_max` and one block: the limit holds while streaming, not after.
C2  Nothing is allocated because a header claims a size; a claim that the bytes at hand cannot fulfil is refused.
C3  Bad input raises ProtocolError and nothing else.

Snappy is written in the framing of the xerial Java library, since Java's clients read no other; librdkafka writes
a bare snappy block, so both are read. Kafka's lz4 is the frame format with independent blocks of 64 KB and
no content size.
"""

import enum
import struct
import zlib
from typing import TYPE_CHECKING

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
    if codec is Codec.GZIP:
        return _decompress_gzip(data, size_bytes_max)
    if codec is Codec.SNAPPY:
        return _decompress_snappy(data, size_bytes_max)
    if codec is Codec.LZ4:
        return _decompress_lz4(data, size_bytes_max)
    return _decompress_zstd(data, size_bytes_max)


def _check_size(size_bytes: int, size_bytes_max: int | None) -> None:
    if size_bytes_max is not None and size_bytes > size_bytes_max:
        raise OversizedError(f"records decompress to more than {size_bytes_max} bytes")


def _decompress_gzip(data: Buffer, size_bytes_max: int | None) -> bytes:
    pieces: list[bytes] = []
    total = 0
    rest: Buffer = data
    while True:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            # Zero would mean "no limit" to zlib, so one byte more than allowed is asked for.
            room = 0 if size_bytes_max is None else size_bytes_max - total + 1
            try:
                piece = member.decompress(rest, room)
            except zlib.error as error:
                raise ProtocolError(f"bad gzip data: {error}") from None
            total += len(piece)
            _check_size(total, size_bytes_max)
            rest = member.unconsumed_tail
            if not member.eof and not rest:
                raise ProtocolError("gzip data ends early")
            pieces.append(piece)
        rest = member.unused_data
        if not rest:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        pieces.append(_INT32.pack(len(block)))
        pieces.append(block)
    return b"".join(pieces)


def _decompress_snappy(data: Buffer, size_bytes_max: int | None) -> bytes:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, size_bytes_max)
    pieces: list[bytes] = []
    total = 0
    pos = 0
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
        pieces.append(piece)
        pos += size
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _decompress_snappy_block(block: memoryview, size_bytes_max: int | None) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_RATIO_MAX:
            raise ProtocolError(f"snappy block of {len(block)} bytes claims to hold {size}")
        _check_size(size, size_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ProtocolError(f"bad snappy data: {error}") from None


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    fast = level is None or level == _LZ4_FAST_LEVEL
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast or level is None else max(level, _LZ4_HIGH_LEVEL_MIN),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return frame


def _decompress_lz4(data: Buffer, size_bytes_max: int | None) -> bytes:
    context = lz4.frame.create_decompression_context()
    view = memoryview(data)
    pieces: list[bytes] = []
    total = 0
    pos = 0
    complete = False
    room = _CHUNK_BYTES
    while pos < len(view) or not complete:
        # lz4 allocates what it is asked for, hence steps that grow with what has really come out.
        if size_bytes_max is not None:
            room = min(room, size_bytes_max - total + 1)
        try:
            piece, consumed, complete = lz4.frame.decompress_chunk(context, view[pos:], max_length=room)
        except RuntimeError as error:
            raise ProtocolError(f"bad lz4 data: {error}") from None
        pos += consumed
        total += len(piece)
        _check_size(total, size_bytes_max)
        if not piece and not consumed:
            raise ProtocolError("lz4 data ends early")
        pieces.append(piece)
        room = max(total, _CHUNK_BYTES)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard  # its import takes longer than all of wire, and many brokers never see zstd

    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


# A decompressor takes 16 µs to make and serves one stream at a time, so idle ones are kept; pop and append are atomic,
# which makes the list safe between threads.
_idle_zstd: "list[zstandard.ZstdDecompressor]" = []


def _decompress_zstd(data: Buffer, size_bytes_max: int | None) -> bytes:
    import zstandard

    try:
        decompressor = _idle_zstd.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    view = memoryview(data)
    pieces: list[bytes] = []
    total = 0
    pos = 0
    try:
        while pos < len(view) or not pos:
            frame = decompressor.decompressobj()
            for start, end in _zstd_blocks(view, pos):
                piece = frame.decompress(view[start:end])
                total += len(piece)
                _check_size(total, size_bytes_max)
                pieces.append(piece)
                pos = end
            if not frame.eof:
                raise ProtocolError("zstd data ends early")
    except zstandard.ZstdError as error:
        raise ProtocolError(f"bad zstd data: {error}") from None
    _idle_zstd.append(decompressor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _zstd_blocks(view: memoryview, pos: int) -> "list[tuple[int, int]]":
    """Cut one frame into pieces of at most one block each, since a block makes at most 128 KB however small it is."""
    import zstandard

    if view[pos : pos + 4] != _ZSTD_MAGIC:
        raise ProtocolError("zstd data begins with no frame")
    try:
        end = pos + zstandard.frame_header_size(view[pos : pos + 18])
        checksum = zstandard.get_frame_parameters(view[pos : pos + 18]).has_checksum
    except zstandard.ZstdError as error:
        raise ProtocolError(f"bad zstd data: {error}") from None
    pieces: list[tuple[int, int]] = []
    last = False
    while not last:
        header = int.from_bytes(view[end : end + 3], "little")
        last = header & 1 == 1
        stored = 1 if header >> 1 & 3 == _ZSTD_RLE_BLOCK else header >> 3
        end += 3 + stored + (4 if last and checksum else 0)
        if end > len(view):
            raise ProtocolError("zstd data ends early")
        pieces.append((pos, end))
        pos = end
    return pieces
