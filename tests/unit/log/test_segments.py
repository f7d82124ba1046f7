"""When a new segment begins, which ones are kept, and what a read finds across them."""

import errno
import os
from pathlib import Path

import pytest

from ottla.log.config import LogConfig
from ottla.wire.batch import build_batch, scan
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from ottla.world.worker import InlineWorker
from tests.unit.log.workbench import NOW, FaultyDisk, Workbench, batch, put, put_from, read_all

DAY = 86_400_000


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path, segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=60_000)
    yield bench
    bench.stop(clean=False)


@pytest.fixture
def log(bench):
    return bench.log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def names(log, ending):
    return sorted(int(name.split(".")[0]) for name in os.listdir(log.path) if name.endswith(ending))


def fill(log, count, **how):
    for n in range(count):
        put(log, n, **how)


def test_a_segment_is_never_larger_than_allowed(log):
    fill(log, 20)
    assert len(log.segments) > 3
    size = len(batch(0))
    for segment in log.segments[:-1]:
        assert 400 - size < segment.file.size <= 400
    assert names(log, ".log") == bases(log)
    assert names(log, ".index") == bases(log)
    assert names(log, ".timeindex") == bases(log)
    assert names(log, ".snapshot") == bases(log)[1:]


def test_a_segment_ends_with_its_age_by_the_first_batch(log):
    log.config = LogConfig(segment_ms=1000)
    put(log, 0, timestamp=NOW)
    put(log, 1, timestamp=NOW + 1000)
    put(log, 2, timestamp=NOW - 5000)
    assert bases(log) == [0]
    put(log, 3, timestamp=NOW + 1001)
    assert bases(log) == [0, 3]
    put(log, 4, timestamp=NOW + 2001)
    assert bases(log) == [0, 3]


def test_without_timestamps_age_counts_from_creation(log):
    log.config = LogConfig(segment_ms=1000)
    timeless = [Record(0, -1, None, b"x")]
    log.append(build_batch(timeless), 0, NOW)
    log.append(build_batch(timeless), 0, NOW + 1000)
    assert bases(log) == [0]
    log.append(build_batch(timeless), 0, NOW + 1001)
    assert bases(log) == [0, 2]


def test_age_survives_a_restart(bench):
    bench.config = bench.log.config = LogConfig(segment_ms=1000)
    put(bench.log, 0, timestamp=NOW)
    log = bench.restart()
    put(log, 1, timestamp=NOW + 900)
    assert bases(log) == [0]
    put(log, 2, timestamp=NOW + 1001)
    assert bases(log) == [0, 2]


def test_jitter_makes_segments_younger(log):
    log.config = LogConfig(segment_ms=1000, segment_jitter_ms=900)
    put(log, 0, timestamp=NOW)
    jitter = log.segments[0].jitter_ms
    assert 0 < jitter < 900
    put(log, 1, timestamp=NOW + 1000 - jitter)
    put(log, 2, timestamp=NOW + 1001 - jitter)
    assert bases(log) == [0, 2]


def test_a_full_index_ends_a_segment(log):
    log.config = LogConfig(segment_index_bytes=24, index_interval_bytes=0)
    fill(log, 12)
    assert len(log.segments) > 3
    for segment in log.segments:
        assert segment.offset_index.size_bytes <= 24
        assert segment.time_index.size_bytes <= 24


def test_offsets_too_far_apart_for_one_segment(log):
    far = (1 << 31) + 5
    log.append_as_follower(build_batch([Record(0, NOW, None, b"near")]))
    log.append_as_follower(build_batch([Record(far, NOW, None, b"far")], base_offset=far))
    assert bases(log) == [0, far]
    assert read_all(log) == [(0, b"near"), (far, b"far")]


def test_an_empty_segment_is_not_rolled(log):
    log.roll()
    assert bases(log) == [0]
    put(log, 0)
    log.roll()
    log.roll()
    assert bases(log) == [0, 1]


def test_reads_cross_segments_and_end_where_asked(log):
    fill(log, 20)
    assert read_all(log) == [(n, b"%d" % n) for n in range(20)]
    size = len(batch(0))
    for offset in range(20):
        for end_offset in range(offset, 21):
            found = [header.base_offset for _, header in scan(log.read(offset, 3 * size, end_offset))]
            assert found == list(range(offset, end_offset))[: len(found)]
            assert len(found) <= 3
            assert bool(found) == (end_offset > offset)
        assert len(log.read(offset, 10, 20)) in (size, size + 1)
        assert log.read(offset, 10, 20, at_least_one=False) == b""


def test_old_and_new_reads_agree_after_a_restart(bench):
    fill(bench.log, 20)
    before = [bytes(bench.log.read(offset, 250, 20)) for offset in range(20)]
    log = bench.restart()
    assert [bytes(log.read(offset, 250, 20)) for offset in range(20)] == before


def test_a_batch_larger_than_the_index_interval(log):
    log.config = LogConfig(index_interval_bytes=50)
    for n in range(8):
        put(log, b"%d" % n * 3000)
    log._tail.start_offset = 1 << 60
    for offset in range(8):
        for size_bytes_max in (1, 100, 3000, 4000, 10_000, 1 << 20):
            found = [header.base_offset for _, header in scan(log.read(offset, size_bytes_max, 8))]
            assert found == list(range(offset, 8))[: max(1, size_bytes_max // 3070)]


def test_many_small_batches_outlive_the_tail(log):
    log.config = LogConfig()
    for n in range(5000):
        put(log, n)
    assert len(log._tail.ends) <= 4096
    for offset in range(0, 5000, 97):
        assert next(scan(log.read(offset, 1, 5000)))[1].base_offset == offset


def test_out_of_range(log):
    fill(log, 10)
    log.raise_start_offset(4)
    for offset in (3, 11):
        with pytest.raises(BrokerError) as caught:
            log.read(offset, 100, 10)
        assert caught.value.code.name == "OFFSET_OUT_OF_RANGE"
    assert log.read(10, 100, 10) == b""


# Retention


def test_retention_by_size(bench, log):
    fill(log, 20)
    sizes = [segment.file.size for segment in log.segments]
    log.config = LogConfig(retention_bytes=sum(sizes[1:]) + 1, retention_ms=-1)
    assert log.delete_old_segments(NOW, 20) == 0, "the log would become smaller than retention.bytes"
    log.config = LogConfig(retention_bytes=sum(sizes[1:]), retention_ms=-1)
    second = bases(log)[1]
    assert log.delete_old_segments(NOW, 20) == 1
    assert bases(log)[0] == log.start_offset == second
    assert read_all(log) == [(n, b"%d" % n) for n in range(second, 20)]


def test_retention_by_age(log):
    fill(log, 4, timestamp=NOW)
    log.roll()
    fill(log, 4, timestamp=NOW + 5000)
    log.config = LogConfig(retention_ms=1000)
    assert log.delete_old_segments(NOW + 1000, 8) == 0
    assert log.delete_old_segments(NOW + 1001, 8) == 1
    assert log.start_offset == 4
    assert log.delete_old_segments(NOW + 1001, 8) == 0
    assert log.delete_old_segments(NOW + 9000, 8) == 1
    assert (log.start_offset, log.end_offset, bases(log)) == (8, 8, [8])
    assert put(log, 8).base_offset == 8


def test_nothing_at_the_high_watermark_goes(log):
    fill(log, 20)
    log.config = LogConfig(retention_ms=0)
    third = bases(log)[2]
    assert log.delete_old_segments(NOW + DAY, third - 1) == 1
    assert log.delete_old_segments(NOW + DAY, third) == 1
    assert log.start_offset == third


def test_records_without_time_age_with_their_file(log):
    log.append(build_batch([Record(0, -1, None, b"x")]), 0, NOW)
    log.roll()
    os.utime(log.segments[0].file.path, (1000, 1000))
    log.config = LogConfig(retention_ms=500)
    assert log.delete_old_segments(1_000_500, 1) == 0
    assert log.delete_old_segments(1_000_501, 1) == 1


def test_compacted_topics_only_lose_what_lies_before_the_start(log):
    fill(log, 20)
    log.config = LogConfig(cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0)
    assert log.delete_old_segments(NOW + DAY, 20) == 0
    third = bases(log)[2]
    log.raise_start_offset(third + 1)
    assert log.delete_old_segments(NOW + DAY, 20) == 2
    assert bases(log)[0] == third
    assert log.start_offset == third + 1


def test_files_go_later(bench, log):
    fill(log, 20)
    log.config = LogConfig(retention_ms=0, file_delete_delay_ms=60_000)
    gone = bases(log)
    log.delete_old_segments(NOW + DAY, 20)
    assert names(log, ".log") == names(log, ".index") == [20]
    assert names(log, ".log.deleted") == gone
    assert names(log, ".snapshot") == [20]
    bench.directory.remove_doomed(NOW, InlineWorker())
    bench.directory.remove_doomed(NOW + 59_999, InlineWorker())
    assert names(log, ".log.deleted") == gone
    bench.directory.remove_doomed(NOW + 60_000, InlineWorker())
    assert not names(log, ".deleted")


def test_on_a_full_disk_all_but_the_segment_that_cannot_be_replaced_goes(tmp_path):
    disk = FaultyDisk()
    bench = Workbench(tmp_path, disk, segment_bytes=400, index_interval_bytes=100)
    log = bench.log
    fill(log, 20)
    last = bases(log)[-1]
    log.config = LogConfig(retention_ms=0)
    disk.fail("append", ".snapshot", errno.ENOSPC)
    with pytest.raises(BrokerError) as caught:
        log.delete_old_segments(NOW + DAY, 20)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (bases(log), log.start_offset, bench.offline) == ([last], last, [])
    assert read_all(log) == [(n, b"%d" % n) for n in range(last, 20)]
    with pytest.raises(BrokerError):
        log.delete_old_segments(NOW + DAY, 20)
    assert bases(log) == [last]
    disk.heal()
    assert log.delete_old_segments(NOW + DAY, 20) == 1
    assert (log.start_offset, put(log, 20).base_offset) == (20, 20)
    disk.fail("append", ".snapshot", errno.EIO)
    with pytest.raises(BrokerError):
        log.delete_old_segments(NOW + 2 * DAY, 21)
    assert len(bench.offline) == 1, "what is no want of room takes the directory offline"
    assert log.start_offset == 20
    bench.stop(clean=False)


def test_a_segment_that_cannot_be_renamed_goes_at_once_with_the_others(bench, log, monkeypatch):
    fill(log, 20)
    first, *others = bases(log)
    log.config = LogConfig(retention_ms=0)
    real = RealDisk.rename

    def rename(self, source, target):
        if source.endswith(f"{first:020}.log"):
            raise OSError(errno.ENOSPC, "no room for a name")
        real(self, source, target)

    monkeypatch.setattr(RealDisk, "rename", rename)
    with pytest.raises(BrokerError):
        log.delete_old_segments(NOW + DAY, 20)
    assert (bases(log), log.start_offset) == ([20], 20)
    assert names(log, ".log") == [20]
    assert names(log, ".log.deleted") == others
    assert names(log, ".snapshot") == [20]


def test_a_raised_start_is_remembered(bench, log):
    fill(log, 20)
    assert log.raise_start_offset(7)
    assert not log.raise_start_offset(6)
    assert log.epoch_for_offset(6) is None
    assert log.epoch_for_offset(7) == 0
    with pytest.raises(BrokerError):
        log.raise_start_offset(21)
    log = bench.restart()
    assert log.start_offset == 7
    bench.directory.checkpoint()
    assert bench.restart(clean=False).start_offset == 7
    path = os.path.join(bench.path, "log-start-offset-checkpoint")
    assert Path(path).read_text() == "0\n1\nt 0 7\n"


# Truncation


def test_truncation_within_and_across_segments(log):
    for n in range(20):
        put(log, n, epoch=n // 5)
    assert log.truncate_to(17)
    assert not log.truncate_to(17)
    assert read_all(log) == [(n, b"%d" % n) for n in range(17)]
    assert log.truncate_to(6)
    assert read_all(log) == [(n, b"%d" % n) for n in range(6)]
    assert log.latest_epoch == 1
    assert names(log, ".log") == bases(log)
    assert put(log, 6, epoch=9).base_offset == 6
    assert log.end_offset_for_epoch(1) == (1, 6)


def test_truncation_within_a_batch_drops_it(log):
    put(log, 0, 1, 2)
    put(log, 3, 4, 5)
    log.truncate_to(4)
    assert log.end_offset == 4
    assert read_all(log) == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert put(log, 4).base_offset == 4


def test_truncation_before_the_first_segment_begins_anew(log):
    fill(log, 20)
    log.config = LogConfig(retention_ms=0)
    log.delete_old_segments(NOW + DAY, 20)
    assert log.truncate_to(3)
    assert (log.start_offset, log.end_offset, bases(log)) == (3, 3, [3])


def test_beginning_anew(log):
    fill(log, 20, epoch=3)
    put_from(log, 5, 0, 1)
    log.truncate_fully_and_start_at(100)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (100, 100, 100)
    assert log.producers() == []
    assert log.latest_epoch is None
    assert names(log, ".log") == [100]
    assert names(log, ".snapshot") == []
    assert put(log, 1).base_offset == 100


def test_truncation_takes_producers_back(log):
    for n in range(10):
        put_from(log, 5, n, n)
        put(log, b"-")
    log.truncate_to(8)
    with pytest.raises(BrokerError) as caught:
        put_from(log, 5, 5, 5)
    assert caught.value.code.name == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert put_from(log, 5, 3, 3).duplicate
    assert put_from(log, 5, 4, 4) == (8, 9, -1, False)
