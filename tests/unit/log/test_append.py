"""What an append stores, stamps and answers, and what it refuses, in Kafka's words."""

import pytest

from ottla.log.config import LogConfig
from ottla.wire.batch import Batch, assemble, build_batch, crc_ok, read_records, restamp_crc, scan
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.record import Record
from tests.unit.log.workbench import NOW, Workbench, batch, end_transaction, put, put_from, read_all

HOUR = 3_600_000


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path)
    yield bench
    bench.stop(clean=False)


@pytest.fixture
def log(bench):
    return bench.log


def refusal(log, records, now_ms=NOW, **how):
    before = log.end_offset, log.size_bytes, list(log.producers())
    with pytest.raises(BrokerError) as caught:
        log.append(records, 0, now_ms, **how)
    assert (log.end_offset, log.size_bytes, list(log.producers())) == before
    return caught.value.code.name


def stored(log, offset=0):
    return log.read(offset, 1 << 20, log.end_offset)


def changed(records, at, data):
    records[at : at + len(data)] = data
    restamp_crc(records, 0, len(records))
    return records


def test_offsets_and_epoch_are_stamped(log):
    assert put(log, 1, 2, 3, epoch=4) == (0, 3, -1, False)
    assert put(log, 4, epoch=4) == (3, 4, -1, False)
    first, second = [header for _, header in scan(stored(log))]
    assert (first.base_offset, first.partition_leader_epoch) == (0, 4)
    assert (second.base_offset, second.partition_leader_epoch) == (3, 4)
    assert crc_ok(stored(log), 0, first.size)
    assert read_all(log) == [(0, b"1"), (1, b"2"), (2, b"3"), (3, b"4")]


def test_a_slice_of_a_receive_buffer_is_taken_where_it_lies(log):
    content = batch(1, 2)
    buffer = bytearray(b"head" + content + b"tail")
    log.append(memoryview(buffer)[4:-4], 3, NOW)
    assert buffer[:4] == b"head"
    assert buffer[-4:] == b"tail"
    assert Batch.parse(buffer, 4).partition_leader_epoch == 3


def test_not_one_batch(log):
    assert refusal(log, bytearray()) == "INVALID_RECORD"
    assert refusal(log, batch(1) + batch(2)) == "INVALID_RECORD"
    assert refusal(log, batch(1)[:-1]) == "INVALID_RECORD"
    assert refusal(log, batch(1)[:40]) == "INVALID_RECORD"
    assert log.append(batch(1) + b"\0", 0, NOW).end_offset == 1, "what is behind the batch is passed over"


def test_older_formats(log):
    for magic in (0, 1):
        records = batch(1)
        records[16] = magic
        assert refusal(log, records) == "INVALID_RECORD"
    records = batch(1)
    records[16] = 3
    assert refusal(log, records) == "CORRUPT_MESSAGE"


def test_damage(log):
    for at in (17, 30, 60, 65):
        records = batch(1, 2)
        records[at] ^= 1
        assert refusal(log, records) == "CORRUPT_MESSAGE"


def test_counts_and_offsets_that_do_not_agree(log):
    assert refusal(log, build_batch([Record(5, NOW, None, b"x")], base_offset=5)) == "INVALID_RECORD"
    for at, value in ((57, 3), (57, 0), (57, -1), (23, 5), (23, -1)):
        records = changed(batch(1, 2), at, value.to_bytes(4, "big", signed=True))
        assert refusal(log, records) == "INVALID_RECORD"


def test_too_large(log):
    log.config = LogConfig(max_message_bytes=500)
    assert refusal(log, batch(b"x" * 600)) == "MESSAGE_TOO_LARGE"
    put(log, b"x" * 300)
    log.config = LogConfig(segment_bytes=500)
    assert refusal(log, batch(b"x" * 600)) == "RECORD_LIST_TOO_LARGE"


def test_what_a_coordinator_has_to_write_is_longer_than_a_client_may_ask_for(log):
    log.config = LogConfig(max_message_bytes=500)
    with pytest.raises(BrokerError) as refused:
        log.append(batch(b"x" * 600), 0, NOW, from_client=False)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    appended = log.append(batch(b"x" * 600), 0, NOW, from_client=False, any_length=True)
    assert appended.end_offset == log.end_offset == 1
    assert len(log.read(0, 1 << 20, 1)) > 600


def test_clients_write_no_control_records(log):
    assert refusal(log, batch(1, control=True)) == "INVALID_RECORD"


def test_a_producer_id_needs_a_sequence(log):
    assert refusal(log, batch(1, producer_id=5, producer_epoch=0)) == "INVALID_RECORD"


def test_an_unknown_codec(log):
    assert refusal(log, changed(batch(1), 21, b"\0\5")) == "UNSUPPORTED_COMPRESSION_TYPE"


def test_timestamps_out_of_range(log):
    assert refusal(log, batch(1, timestamp=NOW + HOUR + 1)) == "INVALID_TIMESTAMP"
    put(log, 1, timestamp=NOW + HOUR)
    log.config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    assert refusal(log, batch(1, timestamp=NOW - 1001)) == "INVALID_TIMESTAMP"
    assert refusal(log, batch(1, timestamp=NOW + 501)) == "INVALID_TIMESTAMP"
    put(log, 1, timestamp=NOW - 1000)
    put(log, 1, timestamp=NOW + 500)
    log.append(build_batch([Record(0, -1, None, b"timeless")]), 0, NOW)
    assert read_all(log)[-1][1] == b"timeless"


def test_keys_in_a_compacted_topic(log):
    log.config = LogConfig(cleanup_policy=frozenset({"compact"}))
    assert refusal(log, batch(1)) == "INVALID_RECORD"
    for codec in Codec:
        assert refusal(log, batch(1, 2, keys=[b"k", None], codec=codec)) == "INVALID_RECORD"
        put(log, 1, 2, keys=[b"k", b""], codec=codec)
    assert refusal(log, changed(batch(1, keys=[b"k"]), 61, b"\xff")) == "INVALID_RECORD"


def test_append_time(log):
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    assert put(log, 1, 2, timestamp=5) == (0, 2, NOW, False)
    header = Batch.parse(stored(log))
    assert header.is_log_append_time
    assert header.max_timestamp == NOW
    assert crc_ok(stored(log), 0, header.size)
    assert [record.timestamp for record in read_records(stored(log))] == [NOW, NOW]
    assert refusal(log, batch(1, log_append_time_ms=5)) == "INVALID_TIMESTAMP"


def test_append_time_is_the_brokers_to_claim(log):
    log.append(batch(1, log_append_time_ms=NOW), 0, NOW)
    header = Batch.parse(stored(log))
    assert not header.is_log_append_time
    assert crc_ok(stored(log), 0, header.size)


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", list(Codec))
def test_the_topics_codec(log, source, target):
    log.config = LogConfig(compression_type=target)
    values = [b"a" * 50, b"b" * 50, b"c"]
    put_from(log, 5, 0, *values, codec=source)
    header = Batch.parse(stored(log))
    assert header.codec == log.config.codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 0, 0)
    assert [record.value for record in read_records(stored(log))] == values
    assert crc_ok(stored(log), 0, header.size)
    assert put_from(log, 5, 0, *values, codec=source).duplicate


def test_a_batch_may_outgrow_the_limit_when_it_is_unpacked(log):
    log.config = LogConfig(compression_type="uncompressed", max_message_bytes=500)
    assert refusal(log, batch(b"x" * 5000, codec=Codec.GZIP)) == "MESSAGE_TOO_LARGE"


def test_records_that_cannot_be_unpacked(log):
    log.config = LogConfig(compression_type="lz4")
    records = batch(b"x" * 100, codec=Codec.GZIP)
    assert refusal(log, changed(records, 70, b"\xff\xff\xff")) == "INVALID_RECORD"


def test_a_duplicate_is_answered_with_the_first_answer(log):
    first = put_from(log, 5, 0, 1, 2, timestamp=NOW - 5)
    put(log, 3)
    again = put_from(log, 5, 0, 1, 2, timestamp=NOW - 5)
    assert again == (first.base_offset, first.end_offset, NOW - 4, True)
    assert log.end_offset == 3


def test_sequences_and_epochs(log):
    put_from(log, 5, 0, 1, producer_epoch=2)
    out_of_order = batch(1, producer_id=5, producer_epoch=2, base_sequence=2)
    assert refusal(log, out_of_order) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    fenced = batch(1, producer_id=5, producer_epoch=1, base_sequence=1)
    assert refusal(log, fenced) == "INVALID_PRODUCER_EPOCH"
    put_from(log, 5, 0, 1, producer_epoch=3)


def test_settings_hold_from_the_next_append(log):
    put(log, 1, timestamp=NOW)
    log.config = LogConfig(segment_ms=10)
    put(log, 2, timestamp=NOW + 11)
    assert len(log.segments) == 2


def test_own_batches_may_be_many(log):
    put(log, 0)
    appended = log.append(batch(1, 2) + batch(3), 7, NOW, from_client=False)
    assert appended == (1, 4, -1, False)
    assert read_all(log) == [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3")]
    assert log.latest_epoch == 7
    assert log.end_offset_for_epoch(0) == (0, 1)
    assert refusal(log, bytearray(), from_client=False) == "INVALID_RECORD"
    damaged = batch(1)
    damaged[-1] ^= 1
    assert refusal(log, batch(1) + damaged, from_client=False) == "CORRUPT_MESSAGE"


def test_markers_are_for_coordinators(log):
    put_from(log, 5, 0, 1, transactional=True)
    end_transaction(log, 5, commit=True, coordinator_epoch=3)
    with pytest.raises(BrokerError) as caught:
        end_transaction(log, 5, commit=True, coordinator_epoch=2)
    assert caught.value.code.name == "TRANSACTION_COORDINATOR_FENCED"
    with pytest.raises(BrokerError) as caught:
        end_transaction(log, 5, commit=True, producer_epoch=-1)
    assert log.end_offset == 2


def test_a_follower_keeps_what_the_leader_stamped(log):
    stream = b""
    for offset, epoch in ((0, 1), (1, 1), (7, 2)):
        stream += build_batch(
            [Record(offset, NOW, None, b"%d" % offset)], base_offset=offset, leader_epoch=epoch
        )
    assert log.append_as_follower(stream[:]) == (0, 8, -1, False)
    assert read_all(log) == [(0, b"0"), (1, b"1"), (7, b"7")]
    assert log.end_offset_for_epoch(1) == (1, 7)
    with pytest.raises(BrokerError) as caught:
        log.append_as_follower(batch(1))
    assert caught.value.code.name == "OFFSET_OUT_OF_RANGE"
    assert log.append_as_follower(b"") == (8, 8, -1, False)
    torn = build_batch([Record(9, NOW, None, b"9")], base_offset=9)
    torn[-1] ^= 1
    with pytest.raises(BrokerError) as caught:
        log.append_as_follower(torn)
    assert caught.value.code.name == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("body", [b"\xff" * 40, b"", bytes(70_000)])
def test_a_follower_stores_nothing_of_an_answer_with_an_unreadable_marker(log, body):
    """It has to note what a marker ends; to find out behind the write that it cannot would leave the file ahead."""
    marker = end_transaction_batch(
        commit=True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW, base_offset=1
    )
    first = build_batch([Record(0, NOW, None, b"0")], leader_epoch=0)
    with pytest.raises(BrokerError, match="the control batch at offset 1 cannot be read") as caught:
        log.append_as_follower(bytes(first + assemble(Batch.parse(marker), body)))
    assert caught.value.code.name == "CORRUPT_MESSAGE"
    assert (log.end_offset, log.size_bytes) == (0, 0)
    assert log.append_as_follower(bytes(first + marker)) == (0, 2, -1, False)


def test_a_gap_is_read_over(log):
    stream = build_batch([Record(0, NOW, None, b"0")]) + build_batch(
        [Record(9, NOW, None, b"9")], base_offset=9
    )
    log.append_as_follower(stream)
    for offset in range(1, 10):
        assert [header.base_offset for _, header in scan(stored(log, offset))] == [9]
    assert [header.base_offset for _, header in scan(log.read(0, 1 << 20, 5))] == [0]
