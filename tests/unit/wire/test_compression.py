"""Codecs: round trips, other writers' frames, bombs and broken input."""

import contextlib
import gzip
import random
import struct
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from ottla.wire.compression import Codec, OversizedError, compress, decompress
from ottla.wire.errors import ProtocolError

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
SAMPLES = {
    "empty": b"",
    "one": b"x",
    "text": b"the quick brown fox " * 500,
    "noise": random.Random(1).randbytes(200_000),
    "long": b"0123456789abcdef" * 40_000,
}


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_round_trip(codec, sample, kind):
    data = SAMPLES[sample]
    packed = compress(codec, kind(data))
    assert type(packed) is bytes
    assert decompress(codec, kind(packed)) == data
    assert decompress(codec, packed, size_bytes_max=len(data)) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 9, 17]), (Codec.ZSTD, [-131072, 1, 22])],
)
def test_every_level_of_kafka(codec, levels):
    for level in levels:
        assert decompress(codec, compress(codec, SAMPLES["text"], level)) == SAMPLES["text"]


@pytest.mark.parametrize("codec", list(Codec))
def test_one_byte_over_the_limit_is_refused(codec):
    data = SAMPLES["long"]
    packed = compress(codec, data)
    for limit in (0, 1, 100, len(data) - 1):
        with pytest.raises(OversizedError):
            decompress(codec, packed, size_bytes_max=limit)


@pytest.mark.parametrize("codec", PACKED)
def test_every_cut_is_noticed(codec):
    packed = compress(codec, SAMPLES["text"] + SAMPLES["noise"][:500])
    for end in range(len(packed)):
        try:
            data = decompress(codec, packed[:end])
        except ProtocolError:
            continue
        # A framed snappy stream may end behind any block; everything else has an end of its own.
        assert codec is Codec.SNAPPY
        assert end == 16
        assert data == b""


@pytest.mark.parametrize("codec", PACKED)
def test_damage_raises_protocol_errors_only(codec):
    rng = random.Random(7)
    packed = compress(codec, SAMPLES["text"])
    for _ in range(2_000):
        damaged = bytearray(packed)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(ProtocolError):
            decompress(codec, damaged, size_bytes_max=1 << 20)


@pytest.mark.parametrize("codec", PACKED)
def test_noise_raises_protocol_errors_only(codec):
    rng = random.Random(8)
    for size in range(64):
        with contextlib.suppress(ProtocolError):
            decompress(codec, rng.randbytes(size), size_bytes_max=1 << 20)


def bomb(codec: Codec) -> bytes:
    """About a gigabyte of zeros, or a claim of one."""
    if codec is Codec.GZIP:
        packer = zlib.compressobj(9, wbits=31)
        return b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    if codec is Codec.LZ4:
        packer = lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX4MB)
        return (
            packer.begin(1 << 28)
            + b"".join(packer.compress(bytes(1 << 22)) for _ in range(64))
            + packer.flush()
        )
    if codec is Codec.ZSTD:
        stream = zstandard.ZstdCompressor(level=19).compressobj()
        return b"".join(stream.compress(bytes(1 << 20)) for _ in range(256)) + stream.flush()
    return b"\xff\xff\xff\xff\x0f" + b"\0" * 20


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_allocates_no_more_than_the_limit(codec):
    limit = 1 << 20
    packed = bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decompress(codec, packed, size_bytes_max=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit + len(packed)


def test_claims_allocate_nothing_without_a_limit_either():
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20))
        header = zstandard.ZstdCompressor().compressobj(size=1 << 40)
        with pytest.raises(ProtocolError):
            decompress(
                Codec.ZSTD, header.compress(b"x" * 10) + header.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_snappy_is_framed_for_java():
    packed = compress(Codec.SNAPPY, SAMPLES["long"])
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (size,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == SAMPLES["long"][: 32 * 1024]


def test_bare_snappy_is_read():
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(SAMPLES["text"]))) == SAMPLES["text"]


def test_concatenated_streams_are_read():
    for codec in PACKED:
        packed = compress(codec, b"one ") + compress(codec, b"two")
        assert decompress(codec, packed, size_bytes_max=7) == b"one two"


def test_lz4_frame_is_as_kafka_writes_it():
    packed = compress(Codec.LZ4, SAMPLES["long"])
    # Version 1, independent blocks, no sizes or checksums; blocks of 64 KB; and the checksum of those two bytes.
    assert packed[:7] == b"\x04\x22\x4d\x18\x60\x40\x82"


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
def test_other_lz4_frames_are_read(linked, checksum):
    packed = lz4.frame.compress(
        SAMPLES["long"],
        block_size=lz4.frame.BLOCKSIZE_MAX1MB,
        block_linked=linked,
        content_checksum=checksum,
        block_checksum=checksum,
        store_size=True,
    )
    assert decompress(Codec.LZ4, packed, size_bytes_max=len(SAMPLES["long"])) == SAMPLES["long"]


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("level", [1, 3, 19])
def test_streamed_zstd_frames_are_read(checksum, level):
    packer = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=False)
    data = SAMPLES["long"] + SAMPLES["noise"]
    stream = packer.compressobj()
    packed = (
        b"".join(
            stream.compress(data[start : start + 1000])
            + (stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) if start % 7_000 == 0 else b"")
            for start in range(0, len(data), 1000)
        )
        + stream.flush()
    )
    assert decompress(Codec.ZSTD, packed, size_bytes_max=len(data)) == data


def test_gzip_of_the_standard_library_is_read():
    assert decompress(Codec.GZIP, gzip.compress(SAMPLES["text"])) == SAMPLES["text"]


def test_a_failed_zstd_stream_does_not_spoil_the_next():
    packed = compress(Codec.ZSTD, SAMPLES["text"])
    for _ in range(3):
        with pytest.raises(OversizedError):
            decompress(Codec.ZSTD, packed, size_bytes_max=10)
        assert decompress(Codec.ZSTD, packed) == SAMPLES["text"]
