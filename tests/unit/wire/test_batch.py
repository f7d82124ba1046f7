"""Batches: the header, stamping and CRC, and both ways with the builders of other clients."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.wire.batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    Batch,
    assemble,
    build_batch,
    crc_ok,
    read_records,
    restamp_crc,
    scan,
    stamp,
)
from ottla.wire.compression import Codec, OversizedError
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record import Record

RECORDS = [
    Record(100, 1_700_000_000_000, b"key", b"value", (("h", b"1"), ("n", None))),
    Record(101, 1_700_000_000_250, None, b"v" * 40_000),
    Record(102, 1_699_999_999_999, b"k" * 90, None),
]


def build(**changes):
    return build_batch(RECORDS, base_offset=100, **changes)


def test_header_fields():
    batch = Batch.parse(
        build(
            codec=Codec.LZ4,
            leader_epoch=3,
            producer_id=9,
            producer_epoch=2,
            base_sequence=7,
            transactional=True,
        )
    )
    assert BATCH_HEADER.size == BATCH_HEADER_SIZE == 61
    assert (batch.base_offset, batch.last_offset, batch.end_offset, batch.record_count) == (100, 102, 103, 3)
    assert (batch.base_timestamp, batch.max_timestamp) == (1_700_000_000_000, 1_700_000_000_250)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (9, 2, 7, 9)
    assert (batch.partition_leader_epoch, batch.magic, batch.codec) == (3, 2, Codec.LZ4)
    assert batch.is_transactional
    assert not batch.is_control
    assert not batch.is_log_append_time
    assert not batch.has_delete_horizon
    assert batch.delete_horizon_ms is None


def test_size_is_the_whole_batch():
    data = build()
    assert Batch.parse(data).size == len(data)


def test_sequences_wrap():
    batch = Batch.parse(build(producer_id=1, producer_epoch=0, base_sequence=0x7FFF_FFFE))
    assert batch.last_sequence == 0
    assert Batch.parse(build()).last_sequence == -1


def test_log_append_time_counts_for_all_records():
    data = build(log_append_time_ms=5)
    assert Batch.parse(data).is_log_append_time
    assert Batch.parse(data).max_timestamp == 5
    assert [record.timestamp for record in read_records(data)] == [5, 5, 5]


def test_delete_horizon_moves_into_the_base_timestamp():
    data = build(delete_horizon_ms=1_800_000_000_000)
    assert Batch.parse(data).delete_horizon_ms == 1_800_000_000_000
    assert Batch.parse(data).max_timestamp == 1_700_000_000_250
    assert read_records(data) == RECORDS


@pytest.mark.parametrize("codec", list(Codec))
def test_round_trip_anywhere_in_a_buffer(codec):
    data = build(codec=codec)
    for buf in (bytes(data), data, memoryview(b"\0" * 7 + data + b"\1" * 9)):
        pos = 7 if isinstance(buf, memoryview) else 0
        assert read_records(buf, pos) == RECORDS
        assert crc_ok(buf, pos, len(data))


def test_stamping_leaves_the_crc_alone():
    data = bytearray(3) + build()
    size = len(data) - 3
    stamp(memoryview(data), 3, 1 << 40, 17)
    batch = Batch.parse(data, 3)
    assert (batch.base_offset, batch.partition_leader_epoch) == (1 << 40, 17)
    assert crc_ok(data, 3, size)
    assert [record.offset for record in read_records(data, 3)] == [(1 << 40) + delta for delta in range(3)]


def test_every_byte_behind_the_crc_is_covered():
    data = build_batch([Record(0, 0, b"k", b"v")])
    for index in range(21, len(data)):
        data[index] ^= 0x10
        assert not crc_ok(data, 0, len(data))
        data[index] ^= 0x10
    data[-1] ^= 1
    restamp_crc(data, 0, len(data))
    assert crc_ok(data, 0, len(data))


def test_scan_stops_before_a_cut_batch():
    one, two = build(), build(codec=Codec.ZSTD)
    data = bytes(one + two)
    assert [pos for pos, _ in scan(data)] == [0, len(one)]
    assert [pos for pos, _ in scan(data, len(one))] == [len(one)]
    for end in range(len(one), len(data)):
        assert [pos for pos, _ in scan(data[:end])] == [0]
        assert [pos for pos, _ in scan(data, 0, end)] == [0]
    assert list(scan(b"")) == []


def test_nonsense_sizes_are_refused():
    data = build()
    for length in (-1, 0, 48):
        struct.pack_into(">i", data, 8, length)
        with pytest.raises(ProtocolError):
            list(scan(data))
    with pytest.raises(ProtocolError):
        Batch.parse(data[:60])


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused(magic):
    data = build()
    data[16] = magic
    with pytest.raises(BrokerError) as caught:
        read_records(data)
    assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_unknown_magic_and_codec_are_refused():
    data = build()
    data[16] = 3
    with pytest.raises(ProtocolError):
        Batch.parse(data)
    data = build()
    data[22] |= 7
    with pytest.raises(ProtocolError):
        read_records(data)


def test_wrong_counts_are_refused():
    for count in (-1, 0, 2, 4, 0x7FFF_FFFF):
        data = build()
        struct.pack_into(">i", data, 57, count)
        with pytest.raises(ProtocolError):
            read_records(data)


def test_cut_batch_is_refused():
    data = build()
    with pytest.raises(ProtocolError):
        read_records(data[:-1])


@pytest.mark.parametrize("codec", list(Codec))
def test_size_limit(codec):
    with pytest.raises(OversizedError):
        read_records(build(codec=codec), size_bytes_max=1_000)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_compaction_emptied_has_no_records(codec):
    header = Batch.parse(build(codec=codec))._replace(record_count=0)
    data = assemble(header, b"")
    assert len(data) == 61
    assert crc_ok(data, 0, 61)
    assert read_records(data) == []


def test_no_records_are_no_batch():
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


KAFKA_PYTHON_OR_AIO = pytest.mark.parametrize(
    ("reader", "builder"),
    [(KafkaPythonBatch, KafkaPythonBuilder), (AioBatch, AioBuilder)],
    ids=["kafka-python", "aiokafka"],
)


@KAFKA_PYTHON_OR_AIO
@pytest.mark.parametrize("codec", list(Codec))
def test_other_clients_read_ours(reader, builder, codec):
    data = bytes(build(codec=codec, producer_id=4, producer_epoch=1, base_sequence=0, transactional=True))
    batch = reader(data)
    assert batch.validate_crc()
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4, 1, 0)
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch] == [
        tuple(r) for r in RECORDS
    ]


@KAFKA_PYTHON_OR_AIO
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [1, 300])
def test_ours_reads_other_clients(reader, builder, codec, count):
    theirs = builder(2, int(codec), True, 5, 3, 11, 1 << 20)
    records = [
        Record(
            i,
            1_700_000_000_000 + i * 997,
            b"key-%d" % (i % 7),
            b"value %d" % i * (i % 50),
            (("n", b"%d" % i),),
        )
        for i in range(count)
    ]
    for record in records:
        theirs.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    data = bytes(theirs.build())
    assert crc_ok(data, 0, len(data))
    batch = Batch.parse(data)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 3, 11)
    assert read_records(data) == records
