"""What breaks off half way: the log in memory and the one the next start finds stay the same, or nobody goes on."""

import errno
import os

import pytest

from ottla.log import names
from ottla.log.checkpoint import RECOVERY_POINTS, read_offsets
from ottla.log.segment import Segment
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import RealDisk, RealFile
from ottla.world.worker import InlineWorker
from tests.unit.log.workbench import NOW, FaultyDisk, Workbench, batch, put, put_from, read_all


class OnceDisk(RealDisk):
    """A disk that refuses one call, once."""

    def __init__(self):
        super().__init__()
        self.refused = None

    def refuse(self, call, ending, code):
        self.refused = call, ending, code

    def _check(self, call, path):
        if self.refused is not None and self.refused[0] == call and path.endswith(self.refused[1]):
            code, self.refused = self.refused[2], None
            raise OSError(code, os.strerror(code), path)

    def open(self, path, *, create=True, size=None):
        if size is None:
            self._check("open", path)
        return super().open(path, create=create, size=size)

    def read_bytes(self, path):
        self._check("read_bytes", path)
        return super().read_bytes(path)

    def sync_dir(self, path):
        self._check("sync_dir", path)
        super().sync_dir(path)

    def remove(self, path):
        self._check("remove", path)
        super().remove(path)


def many(tmp_path, **settings):
    bench = Workbench(tmp_path, OnceDisk(), segment_bytes=400, **settings)
    for number in range(17):
        put_from(bench.log, 7, number, number)
    assert len(bench.log.segments) > 3
    return bench


def check_cut(bench, cut):
    """A log that was cut knows its producer, goes on, and is found so by the next start."""
    log = bench.log
    assert log.end_offset == cut
    assert put_from(log, 7, cut - 1, cut - 1).duplicate
    assert put_from(log, 7, cut, b"new").base_offset == cut
    assert os.path.getsize(log.segments[-1].file.path) == log.segments[-1].file.size
    expected = read_all(log)
    assert expected == [*((n, b"%d" % n) for n in range(cut)), (cut, b"new")]
    log = bench.restart(clean=False)
    assert read_all(log) == expected
    bench.stop(clean=False)


def test_a_cut_that_cannot_tell_its_producers_cuts_nothing_and_may_be_tried_again(tmp_path):
    bench = many(tmp_path)
    cut = bench.log.segments[2].base_offset + 1
    bench.disk.refuse("read_bytes", ".snapshot", errno.EMFILE)
    with pytest.raises(BrokerError) as raised:
        bench.log.truncate_to(cut)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert bench.directory.offline is None
    assert put_from(bench.log, 7, 16, 16).duplicate
    assert len(read_all(bench.log)) == 17
    assert bench.log.truncate_to(cut)
    check_cut(bench, cut)


def test_a_cut_without_descriptors_is_whole_or_not_at_all(tmp_path, monkeypatch):
    """Whichever file cannot be opened: only the indexes, which are cut with the batches, may end the directory."""
    opened = os.open
    left = -1

    def open_some(path, *how, **more):
        nonlocal left
        left -= 1
        if left == -1:
            refused.append(path)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return opened(path, *how, **more)

    refused = []
    for number in range(100):
        bench = many(tmp_path / str(number))
        cut = bench.log.segments[2].base_offset + 1
        bench.log.sync()
        bench.directory.checkpoint()
        bench.log.rest()
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", open_some)
            left = number
            try:
                bench.log.truncate_to(cut)
                done = True
            except BrokerError:
                done = False
        if len(refused) == number:
            break
        if bench.directory.offline is not None:
            assert refused[-1].endswith("index")
            bench.stop(clean=False)
            continue
        if not done:
            assert put_from(bench.log, 7, 16, 16).duplicate
            assert len(read_all(bench.log)) == 17
            assert bench.log.truncate_to(cut)
        check_cut(bench, cut)
    assert done and 3 < len(refused) < 100
    check_cut(bench, cut)


@pytest.mark.parametrize(("at", "kind"), [(-2, "log"), (0, "log"), (0, "index"), (2, "snapshot")])
def test_a_log_that_is_half_removed_ends_the_directory(tmp_path, at, kind):
    bench = many(tmp_path)
    bench.disk.refuse("remove", f"{bench.log.segments[at].base_offset:020d}.{kind}", errno.ENOSPC)
    with pytest.raises(BrokerError) as raised:
        bench.log.truncate_fully_and_start_at(100)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert bench.directory.offline is not None
    bench.stop(clean=False)


def test_an_emptied_log_whose_new_files_cannot_be_made_goes_on(tmp_path):
    """Nothing is left of it then, on disk and in memory."""
    bench = many(tmp_path)
    bench.disk.refuse("open", f"{100:020d}.index", errno.EMFILE)
    with pytest.raises(BrokerError):
        bench.log.truncate_fully_and_start_at(100)
    assert bench.directory.offline is None
    put_from(bench.log, 7, 100, b"new")
    assert read_all(bench.restart(clean=False)) == [(100, b"new")]
    bench.stop(clean=False)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_snapshot_that_cannot_be_removed_keeps_no_segment(tmp_path, code):
    bench = many(tmp_path, retention_ms=1000, file_delete_delay_ms=0)
    second = bench.log.segments[1].base_offset
    bench.disk.refuse("remove", f"{second:020d}.snapshot", code)
    later = NOW + 3_600_000
    with pytest.raises(BrokerError):
        bench.log.delete_old_segments(later, 17)
    assert (bench.directory.offline is None) == (code == errno.ENOSPC)
    bench.directory.remove_doomed(later, InlineWorker())
    left = [name for name in os.listdir(bench.log_path) if name.endswith((".log", ".deleted"))]
    assert left == [f"{17:020d}.log"]
    if code == errno.ENOSPC:
        put_from(bench.log, 7, 17, 17)
        bench.log.settle()
        snapshots = [name for name in os.listdir(bench.log_path) if name.endswith(".snapshot")]
        assert sorted(snapshots) == [f"{17:020d}.snapshot", f"{18:020d}.snapshot"]
    bench.stop(clean=False)


def test_a_snapshot_that_cannot_be_removed_breaks_no_exchange_of_segments(tmp_path):
    bench = many(tmp_path, file_delete_delay_ms=0)
    first, second = bench.log.segments[:2]
    new = Segment.create(bench.disk, bench.log_path, 0, names.CLEANED)
    for old in (first, second):
        new.append(old.file.read(0, old.file.size), 4096)
    expected = read_all(bench.log)
    bench.disk.refuse("remove", f"{second.base_offset:020d}.snapshot", errno.ENOSPC)
    bench.log.replace_segments([new], [first, second])
    assert bench.directory.offline is None
    bench.directory.remove_doomed(NOW, InlineWorker())
    assert not [name for name in os.listdir(bench.log_path) if name.endswith(names.DELETED)]
    assert read_all(bench.log) == expected
    bench.log.settle()
    assert not os.path.exists(f"{bench.log_path}/{second.base_offset:020d}.snapshot")
    bench.stop(clean=False)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("own", [False, True])
def test_an_append_that_cannot_read_the_age_of_its_segment_is_a_storage_error(
    tmp_path, code, own, monkeypatch
):
    bench = Workbench(tmp_path)
    put(bench.log, 1)
    log = bench.restart()
    assert log.end_offset == 1  # opened
    log.rest()

    def read(self, position, size):
        raise OSError(code, os.strerror(code), self.path)

    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "read", read)
        with pytest.raises(BrokerError) as raised:
            log.append(batch(9), 0, NOW, from_client=not own)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (bench.directory.offline is None) == (code == errno.EMFILE)
    if code == errno.EMFILE:
        assert put(log, 9).base_offset == 1
    bench.stop(clean=False)


def test_a_cut_lowers_a_checkpoint_that_was_replaced_and_not_synced(tmp_path, monkeypatch):
    bench = Workbench(tmp_path, OnceDisk())
    path = f"{tmp_path}/{RECOVERY_POINTS}"
    for end_offset in (5, 10):
        for number in range(5):
            put(bench.log, number)
        bench.log.sync()
        if end_offset == 10:
            bench.disk.refuse("sync_dir", "", errno.EMFILE)
            with pytest.raises(OSError, match="Too many"):
                bench.directory.checkpoint()
        else:
            bench.directory.checkpoint()
        assert read_offsets(bench.disk, path) == {("t", 0): end_offset}
    bench.disk.refuse("sync_dir", "", errno.EMFILE)
    with pytest.raises(BrokerError):
        bench.log.truncate_to(6)
    assert bench.log.end_offset == 10
    assert read_offsets(bench.disk, path) == {("t", 0): 6}  # and on the device anything up to 10
    synced = []
    monkeypatch.setattr(bench.disk, "sync_dir", synced.append)
    bench.log.truncate_to(6)
    assert synced == [str(tmp_path)]
    assert read_offsets(bench.disk, path) == {("t", 0): 6}
    bench.stop(clean=False)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EINVAL])
def test_a_log_that_cannot_settle_keeps_no_other_from_the_checkpoint(tmp_path, monkeypatch, code):
    monkeypatch.setattr("ottla.log.directory._SETTLE_BYTES", 100)
    bench = Workbench(tmp_path, FaultyDisk())
    other = bench.directory.create_log("u", 0, bytes(16), bench.config)
    for log in (bench.log, other):
        for number in range(5):
            put(log, bytes(100 + number))
        log.sync()
    bench.disk.fail("append", "t-0/00000000000000000000.timeindex", code)
    with pytest.raises(BrokerError):
        bench.directory.checkpoint()
    points = read_offsets(bench.disk, f"{tmp_path}/{RECOVERY_POINTS}")
    if code == errno.EIO:
        assert bench.directory.offline is not None, "it is told of the disk once and for all"
        assert points == {}
    else:
        assert bench.directory.offline is None
        assert points == {("t", 0): 5, ("u", 0): 5}
    assert bench.directory.bugs.total == (code == errno.EINVAL)
    bench.stop(clean=False)


def test_what_a_roll_wrote_before_it_failed_is_synced_all_the_same(tmp_path):
    bench = Workbench(tmp_path, OnceDisk())
    put_from(bench.log, 7, 0, 0)
    bench.log.sync()
    bench.disk.refuse("open", names.LOG, errno.ENOSPC)
    with pytest.raises(BrokerError):
        bench.log.roll()
    put_from(bench.log, 7, 1, 1)
    paths = [file.path for file in bench.log.unsynced()]
    bench.log.not_synced()
    assert f"{bench.log_path}/00000000000000000001{names.SNAPSHOT}" in paths
    assert f"{bench.log_path}/{names.LEADER_EPOCHS}" in paths
    bench.stop(clean=False)
