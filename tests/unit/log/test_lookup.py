"""Finding records by time, and transactions by offset."""

import pytest

from ottla.log.config import LogConfig
from ottla.log.lookup import end_of
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.record import Record
from tests.unit.log.workbench import NOW, Workbench, end_transaction, put, put_from


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path, segment_bytes=600, index_interval_bytes=100)
    yield bench
    bench.stop(clean=False)


@pytest.fixture
def log(bench):
    return bench.log


@pytest.mark.parametrize("restart", [None, True, False])
def test_the_first_record_not_older(bench, restart):
    stamps = []
    log = bench.log
    for n in range(30):
        codec = Codec.GZIP if n % 2 else Codec.NONE
        put(log, n, n, timestamp=NOW + 10 * n, epoch=n // 10, codec=codec)
        stamps += [NOW + 10 * n, NOW + 10 * n + 1]
    if restart is not None:
        log = bench.restart(clean=restart)
    for timestamp in range(NOW - 5, NOW + 291):
        offset = next(at for at, stamp in enumerate(stamps) if stamp >= timestamp)
        assert log.offset_for_timestamp(timestamp) == (stamps[offset], offset, offset // 20)
    assert log.offset_for_timestamp(NOW + 292) is None
    assert log.max_timestamp() == (NOW + 291, 59, 2)


def test_times_that_go_back(log):
    for n, timestamp in enumerate([50, 90, 20, 70, 95, 10]):
        put(log, n, timestamp=timestamp)
        if n % 2:
            log.roll()
    assert log.offset_for_timestamp(60).offset == 1
    assert log.offset_for_timestamp(91).offset == 4
    assert log.max_timestamp()[:2] == (95, 4)


def test_records_before_the_start_do_not_count(log):
    for n in range(6):
        put(log, n, n, timestamp=NOW + 10 * n)
    log.raise_start_offset(5)
    assert log.offset_for_timestamp(NOW).offset == 5


def test_an_empty_log_has_no_times(log):
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None
    log.append(build_batch([Record(0, -1, None, b"x")]), -1, NOW)
    assert log.max_timestamp() == (-1, 0, None)


def test_append_time_counts_for_the_whole_batch(log):
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    put(log, 1, 2, 3, timestamp=5)
    assert log.offset_for_timestamp(NOW) == (NOW, 0, 0)
    assert log.max_timestamp() == (NOW, 0, 0)


@pytest.mark.parametrize("restart", [None, True, False])
def test_aborted_transactions(bench, restart):
    log = bench.log
    put_from(log, 1, 0, 1, transactional=True)
    put_from(log, 2, 0, 1, transactional=True)
    end_transaction(log, 1, commit=False)
    put_from(log, 1, 1, 1, transactional=True)
    end_transaction(log, 2, commit=True)
    log.roll()
    put(log, b"x")
    end_transaction(log, 1, commit=False)
    put_from(log, 1, 2, 1, transactional=True)
    if restart is not None:
        log = bench.restart(clean=restart)
    assert log.aborted_transactions(0, 8) == [(1, 0), (1, 3)]
    assert log.aborted_transactions(0, 1) == [(1, 0)]
    assert log.aborted_transactions(2, 3) == [(1, 0)]
    assert log.aborted_transactions(3, 5) == [(1, 3)]
    assert log.aborted_transactions(7, 8) == []
    assert log.first_unstable_offset == 7
    assert log.last_stable_offset(8) == 7
    assert log.last_stable_offset(5) == 5 if restart is not None else 3
    entries = log.segments[0].transaction_index.entries() + log.segments[1].transaction_index.entries()
    assert [(txn.last_offset, txn.last_stable_offset) for txn in entries] == [(2, 1), (6, 7)]


def test_truncation_takes_transactions_back(log):
    put_from(log, 1, 0, 1, transactional=True)
    end_transaction(log, 1, commit=False)
    put_from(log, 1, 1, 1, transactional=True)
    end_transaction(log, 1, commit=False)
    log.truncate_to(3)
    assert log.aborted_transactions(0, 3) == [(1, 0)]
    assert log.first_unstable_offset == 2
    log.truncate_to(1)
    assert log.aborted_transactions(0, 1) == []
    assert log.first_unstable_offset == 0


def test_what_a_transaction_looks_like_to_describe_producers(log):
    put_from(log, 7, 0, 1, 2, transactional=True, timestamp=NOW)
    (entry,) = log.producers()
    assert (entry.producer_id, entry.epoch, entry.transaction_first_offset) == (7, 0, 0)
    assert (entry.batches[-1].last_sequence, entry.last_timestamp) == (1, NOW + 1)
    assert log.expire_producers(NOW + (1 << 40)) == 0
    end_transaction(log, 7, commit=True, coordinator_epoch=4)
    assert (entry.coordinator_epoch, entry.transaction_first_offset) == (4, -1)
    assert log.expire_producers(NOW + 86_400_000) == 1
    assert log.producers() == []


def test_what_was_read_says_which_aborted_transactions_are_of_interest(log):
    """All up to the last stable offset were told with every piece that was read, however small."""
    for sequence in range(20):
        put_from(log, 1, sequence, 1, transactional=True)
        end_transaction(log, 1, commit=False)
    data = log.read(10, 150, 40)
    assert end_of(data) == 12
    assert log.aborted_transactions(10, 40, data) == [(1, 10)]
    more = log.read(10, 1 << 20, 40)
    assert log.aborted_transactions(10, 40, more) == [(1, each) for each in range(10, end_of(more), 2)]
    assert end_of(b"") == 0
