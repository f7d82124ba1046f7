"""What is on the device when, and what a failing disk does to a log."""

import errno
import os

import pytest

from ottla.wire.errors import BrokerError
from tests.unit.log.workbench import NOW, FaultyDisk, Workbench, batch, put, put_from, read_all


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path, FaultyDisk(), index_interval_bytes=100)
    yield bench
    bench.disk.heal()
    bench.stop(clean=False)


@pytest.fixture
def log(bench):
    return bench.log


def sync_as_a_flusher(log, between=lambda: None):
    """Sync in the steps the group commit takes, with something happening before it comes back."""
    end_offset = log.end_offset
    files = log.unsynced()
    for file in files:
        file.pins += 1
    between()
    for file in files:
        file.sync()
    for file in files:
        file.pins -= 1
    log.synced(end_offset)
    return [os.path.basename(file.path) for file in files]


def test_the_first_sync_covers_the_new_files_and_their_names(log):
    put(log, 1)
    assert sync_as_a_flusher(log) == [
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "t-0",
        os.path.basename(os.path.dirname(log.path)),
    ]
    assert log.recovery_point == 1


def test_a_sync_covers_one_file(log):
    put(log, 1)
    log.sync()
    put(log, 2)
    assert sync_as_a_flusher(log) == ["00000000000000000000.log"]
    assert log.recovery_point == 2
    assert log.unsynced() == []


def test_what_comes_during_a_sync_waits_for_the_next(log):
    put(log, 1)
    sync_as_a_flusher(log, lambda: put(log, 2))
    assert log.recovery_point == 1
    assert len(log.unsynced()) == 1


def test_a_roll_is_durable_with_its_indexes_and_snapshot(log):
    put(log, 1)
    log.sync()
    put(log, 2)
    log.roll()
    put(log, 3)
    assert log.is_sync_due
    names = sync_as_a_flusher(log)
    assert names == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "t-0",
    ]
    assert log.recovery_point == 3
    assert not log.is_sync_due


def test_a_sleeping_log_has_nothing_to_sync_and_sleeps_on(bench):
    put(bench.log, 1)
    bench.log.roll()
    log = bench.restart()
    assert not log.is_sync_due
    assert log.is_dormant


def test_a_roll_during_a_sync_holds_the_recovery_point_back(log):
    put(log, 1)
    put(log, 2)
    sync_as_a_flusher(log, log.roll)
    assert log.recovery_point == 1, "the indexes of the rolled segment are not synced yet"
    log.sync()
    assert log.recovery_point == 2


def test_a_pinned_file_does_not_rest(log):
    put(log, 1)
    file = log.unsynced()[0]
    file.pins += 1
    log.rest()
    assert file._fd >= 0
    file.pins -= 1
    log.rest()
    assert file._fd < 0
    put(log, 2)
    assert read_all(log) == [(0, b"1"), (1, b"2")]


def test_recovery_resumes_where_the_log_was_settled(bench):
    log = bench.log
    for n in range(20):
        put_from(log, 5, n, n)
    log.settle()
    log.sync()
    for n in range(20, 30):
        put_from(log, 5, n, n)
    bench.directory.checkpoint()
    # Damage far below the recovery point is not for recovery to judge, nor to read.
    with open(log.segments[0].file.path, "r+b") as file:
        file.seek(65)
        file.write(b"\xff")
    log = bench.restart(clean=False)
    assert log.end_offset == 30
    assert bench.warnings == []
    assert put_from(log, 5, 30, 30).base_offset == 30
    bench.log.segments[0].retire()
    again = Workbench(f"{bench.path}/again", index_interval_bytes=100).log
    for n in range(31):
        put_from(again, 5, n, n)
    resumed, uninterrupted = log.segments[0].offset_index, again.segments[0].offset_index
    assert bytes(resumed._entry_bytes()) == bytes(uninterrupted._entry_bytes())
    again.rest()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_can_be_tried_again(bench, log, code):
    put_from(log, 5, 0, 0)
    bench.disk.fail("append", ".log", code)
    for _ in range(2):
        with pytest.raises(BrokerError) as caught:
            put_from(log, 5, 1, 1)
        assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
        assert caught.value.code.retriable
    assert (log.end_offset, read_all(log)) == (1, [(0, b"0")])
    assert bench.directory.offline is None
    bench.disk.heal()
    assert put_from(log, 5, 1, 1) == (1, 2, -1, False)


def test_a_full_disk_at_the_very_first_append(bench, log):
    bench.disk.fail("append", ".log", errno.ENOSPC)
    with pytest.raises(BrokerError):
        put(log, 0, timestamp=NOW + 1000)
    bench.disk.heal()
    put(log, 0, timestamp=NOW)
    assert log.segments[0].load_first_timestamp() == NOW


@pytest.mark.parametrize("ending", [".index", ".timeindex", ".snapshot"])
def test_a_full_disk_while_rolling(bench, log, ending):
    for n in range(9):
        put_from(log, 5, n, n, timestamp=NOW + n)
    bench.disk.fail("append", ending, errno.ENOSPC)
    with pytest.raises(BrokerError) as caught:
        log.roll()
    assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
    assert len(log.segments) == 1
    put_from(log, 5, 9, 9, timestamp=NOW + 9)
    bench.disk.heal()
    log.roll()
    put_from(log, 5, 10, 10, timestamp=NOW + 10)
    log = bench.restart()
    assert read_all(log) == [(n, b"%d" % n) for n in range(11)]
    assert bench.warnings == []
    assert all(segment.offset_index.ascends() for segment in log.segments)


def test_any_other_failure_takes_the_directory_offline(bench, log):
    put(log, 0)
    bench.disk.fail("append", ".log", errno.EIO)
    with pytest.raises(BrokerError) as caught:
        put(log, 1)
    assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
    assert bench.directory.offline.errno == errno.EIO
    assert [error.errno for error in bench.offline] == [errno.EIO]
    assert log.end_offset == 1
    with pytest.raises(BrokerError):
        put(log, 1)
    assert len(bench.offline) == 1
    bench.disk.heal()
    bench.stop(clean=True)
    assert not os.path.exists(f"{bench.path}/.kafka_cleanshutdown")


def test_too_many_open_files(bench, log):
    other = bench.directory.create_log("other", 0, bytes(16), bench.config)
    put(other, 1)
    bench.directory.rest_idle()
    assert other.segments[0].file._fd >= 0
    attempts = []
    real = log.segments[0].file

    class Scarce:
        size, path, pins = 0, real.path, 0

        def append(self, data):
            attempts.append(other.segments[0].file._fd)
            if len(attempts) == 1:
                raise OSError(errno.EMFILE, "Too many open files")
            real.append(data)
            self.size = real.size

        def read(self, position, size):
            return real.read(position, size)

        def rest(self):
            real.rest()

    log.segments[0].file = Scarce()
    put(log, 1)
    assert attempts[0] >= 0 > attempts[1]
    assert read_all(log) == [(0, b"1")]


def test_a_failed_sync_is_the_callers_to_judge(bench, log):
    put(log, 1)
    bench.disk.fail("sync", ".log")
    with pytest.raises(OSError, match="EIO"):
        log.sync()
    assert log.recovery_point == 0


def test_a_short_write_leaves_no_trace(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    put(bench.log, 0)
    size = bench.log.segments[0].file.size
    writes = []

    def short(fd, data, position):
        if writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        writes.append(len(data))
        return real(fd, bytes(data)[: len(data) // 2], position)

    real = os.pwrite
    monkeypatch.setattr("ottla.log.log._append_plain", None)  # which writes without asking Python
    monkeypatch.setattr("ottla.world.disk.os.pwrite", short)
    with pytest.raises(BrokerError):
        put(bench.log, 1)
    monkeypatch.undo()
    assert writes == [len(batch(1))]
    assert os.path.getsize(bench.log.segments[0].file.path) == size
    assert put(bench.log, 1).base_offset == 1
    bench.stop(clean=False)
