"""What recovery kept is on the device before it counts (V4): a killed process leaves it in the page cache alone."""

import errno
import os

import pytest

from ottla.log.checkpoint import RECOVERY_POINTS
from ottla.partition.flusher import AckFlusher
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from tests.unit.log.workbench import FaultyDisk, Workbench, put, put_from, read_all


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path, FaultyDisk(), segment_bytes=400)
    yield bench
    bench.disk.heal()
    bench.stop(clean=False)


def synced(bench):
    return {os.path.basename(path) for what, path in bench.disk.calls if what == "sync"}


def test_what_a_killed_process_wrote_is_synced_at_the_start(bench):
    for number in range(12):
        put_from(bench.log, 7, number, number)
    bases = [segment.base_offset for segment in bench.log.segments]
    assert len(bases) == 3
    bench.stop(clean=False)
    bench.disk.calls.clear()
    log = bench.start()
    assert log.recovery_point == log.end_offset == 12
    files = {f"{base:020d}.{kind}" for base in bases for kind in ("log", "index", "timeindex")}
    snapshots = {f"{base:020d}.snapshot" for base in bases[1:]}
    assert synced(bench) == files | snapshots | {"leader-epoch-checkpoint", "partition.metadata"}
    assert log.unsynced() == []


def test_the_names_are_synced_too(bench, monkeypatch):
    put(bench.log, 1)
    names = []
    bench.stop(clean=False)
    monkeypatch.setattr(bench.disk, "sync_dir", names.append)
    bench.start()
    assert names == [bench.log_path, bench.path]


def test_a_log_that_was_synced_is_not_synced_again(bench):
    put(bench.log, 1)
    bench.log.sync()
    bench.directory.checkpoint()
    bench.stop(clean=False)
    bench.disk.calls.clear()
    assert bench.start().recovery_point == 1
    assert synced(bench) == set()


def test_what_a_partition_counts_as_durable_is(bench):
    for number in range(3):
        put(bench.log, number)
    log = bench.restart(clean=False)
    partition = Partition(log, bytes(16), 0, AckFlusher([], print, print))
    assert partition.durable_offset == partition.high_watermark == log.recovery_point == 3


def test_a_start_that_cannot_sync_takes_the_directory_offline(bench):
    put(bench.log, 1)
    bench.stop(clean=False)
    bench.disk.fail("sync", ".log")
    bench.start()
    assert bench.directory.offline.errno == errno.EIO


def test_a_log_opened_by_itself_is_synced(bench):
    put(bench.log, 1)
    bench.stop(clean=False)
    bench._open()
    assert bench.directory.open_log("t", 0, bytes(16), bench.config).recovery_point == 1


def tear(bench):
    """Stop cleanly, then leave a torn end and no checkpoint, as no clean stop does."""
    for number in range(3):
        put(bench.log, number)
    bench.stop()
    with open(f"{bench.log_path}/{0:020d}.log", "ab") as file:
        file.write(b"half a batch")
    os.remove(f"{bench.path}/{RECOVERY_POINTS}")


def test_a_log_that_is_recovered_when_it_is_woken_is_synced(bench):
    tear(bench)
    log = bench.start()
    bench.disk.calls.clear()
    assert log.end_offset == 3
    assert log.recovery_point == 3
    assert f"{0:020d}.log" in synced(bench)


def test_a_log_whose_sync_fails_when_it_is_woken_stays_asleep(bench):
    tear(bench)
    log = bench.start()
    bench.disk.fail("sync", ".log", errno.EMFILE)
    for _ in range(2):
        with pytest.raises(BrokerError):
            put(log, 3)
        assert log.is_dormant
    bench.disk.heal()
    assert [offset for offset, _ in read_all(log)] == [0, 1, 2]
    assert not log.is_dormant
