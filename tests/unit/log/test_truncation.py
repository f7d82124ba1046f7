"""What a truncation leaves on disk, and what a crash at any of its steps does to the next start."""

import errno
import os
from pathlib import Path

import pytest

from ottla.log.checkpoint import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    read_offsets,
)
from ottla.log.cleaner import Cleaner
from ottla.wire.errors import BrokerError
from ottla.world.disk import RealDisk, RealFile
from tests.unit.log.workbench import NOW, TOPIC_ID, Workbench, put, put_from, read_all


class Killed(BaseException):
    """The process ends here."""


class MortalDisk(RealDisk):
    """A disk whose process is killed before the change number `left` from now."""

    def __init__(self):
        super().__init__()
        self.left = None

    def _change(self):
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1

    def open(self, path, *, create=True, size=None):
        if size is None and not os.path.exists(path):
            self._change()
        return MortalFile(super().open(path, create=create, size=size), self)

    def rename(self, source, target):
        self._change()
        super().rename(source, target)

    def remove(self, path):
        self._change()
        super().remove(path)

    def write_atomic(self, path, data):
        self._change()
        super().write_atomic(path, data)


class MortalFile:
    def __init__(self, inner, disk):
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_disk", disk)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __setattr__(self, name, value):
        setattr(self._inner, name, value)

    def append(self, data):
        self._disk._change()
        self._inner.append(data)

    def truncate(self, size):
        self._disk._change()
        self._inner.truncate(size)

    def write_at(self, position, data):
        self._disk._change()
        self._inner.write_at(position, data)


def on_disk(bench, name):
    return read_offsets(RealDisk(), f"{bench.path}/{name}").get(("t", 0))


def damage(path, value):
    """Change a record's value, so that its batch's CRC is wrong."""
    data = bytearray(path.read_bytes())
    at = data.index(value)
    data[at] ^= 1
    path.write_bytes(data)


def test_what_was_rewritten_after_a_cut_is_judged_by_recovery(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, b"old%d" % n)
    bench.log.sync()
    bench.directory.checkpoint()
    assert on_disk(bench, RECOVERY_POINTS) == 10
    bench.log.truncate_to(5)
    for n in range(5, 10):
        put(bench.log, b"new%d" % n)
    bench.stop(clean=False)
    damage(tmp_path / "t-0" / "00000000000000000000.log", b"new7")
    log = bench.start()
    assert read_all(log) == [(n, b"old%d" % n) for n in range(5)] + [(n, b"new%d" % n) for n in (5, 6)]
    assert log.end_offset == 7
    bench.stop(clean=False)


def test_all_checkpoints_are_lowered_with_a_cut_below_them(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, n)
    bench.log.sync()
    bench.log.raise_start_offset(8)
    bench.directory.checkpoint()
    bench.directory.write_high_watermarks({("t", 0): 9, ("other", 3): 7})
    bench.log.truncate_to(5)
    assert [on_disk(bench, name) for name in (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS)] == [5, 5, 5]
    assert read_offsets(RealDisk(), f"{bench.path}/{HIGH_WATERMARKS}")["other", 3] == 7
    put(bench.log, b"new")
    log = bench.restart(clean=False)
    assert (log.start_offset, log.end_offset) == (5, 6)
    bench.stop(clean=False)


def test_a_cut_above_all_checkpoints_writes_none(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, n)
    bench.directory.checkpoint()  # nothing is synced: the recovery point is 0

    def write_atomic(self, path, data):
        raise AssertionError(path)

    monkeypatch.setattr(RealDisk, "write_atomic", write_atomic)
    assert bench.log.truncate_to(5)


def test_a_start_after_a_start_knows_what_the_checkpoints_said(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, n)
    bench.log.sync()
    bench.directory.checkpoint()
    log = bench.restart(clean=False)
    log.truncate_to(5)
    assert on_disk(bench, RECOVERY_POINTS) == 5
    bench.stop(clean=False)


def test_a_log_made_anew_is_not_vouched_for_by_its_namesake(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, b"old%d" % n)
    bench.log.sync()
    bench.directory.checkpoint()
    bench.directory.delete_log(bench.log)
    log = bench.directory.create_log("t", 0, TOPIC_ID, bench.config)
    for n in range(5):
        put(log, b"new%d" % n)
    bench.stop(clean=False)
    damage(tmp_path / "t-0" / "00000000000000000000.log", b"new3")
    assert read_all(bench.start()) == [(n, b"new%d" % n) for n in range(3)]
    bench.stop(clean=False)


def test_a_checkpoint_that_cannot_be_lowered_leaves_the_log_uncut(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, n)
    bench.log.sync()
    bench.directory.checkpoint()

    def write_atomic(self, path, data):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(RealDisk, "write_atomic", write_atomic)
        for cut in (lambda: bench.log.truncate_to(5), lambda: bench.log.truncate_fully_and_start_at(3)):
            with pytest.raises(BrokerError) as caught:
                cut()
            assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
            assert [offset for offset, _ in read_all(bench.log)] == list(range(10))
    assert not bench.offline  # a full disk passes
    assert bench.log.truncate_to(5)
    bench.stop(clean=False)


def test_a_log_whose_new_segment_cannot_be_made_is_empty_and_can_be_written_to(tmp_path, monkeypatch):
    bench = Workbench(tmp_path, segment_bytes=300)
    for n in range(20):
        put(bench.log, n)
    opened = RealDisk.open

    def open_nothing(self, path, *, create=True, size=None):
        if size is None:
            raise OSError(errno.EMFILE, "too many files")
        return opened(self, path, create=create, size=size)

    with monkeypatch.context() as patch:
        patch.setattr(RealDisk, "open", open_nothing)
        with pytest.raises(BrokerError):
            bench.log.truncate_fully_and_start_at(50)
    assert (bench.log.start_offset, bench.log.end_offset) == (50, 50)
    assert read_all(bench.log) == []
    put(bench.log, b"new")
    assert read_all(bench.restart(clean=False)) == [(50, b"new")]
    bench.stop(clean=False)


CUTS = {
    "to 5": (lambda log: log.truncate_to(5), 5),
    "to 13": (lambda log: log.truncate_to(13), 13),
    "all, from 3": (lambda log: log.truncate_fully_and_start_at(3), None),
    "all, from 100": (lambda log: log.truncate_fully_and_start_at(100), None),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_kill_at_any_step_of_a_cut_leaves_a_prefix_of_the_old_log(tmp_path, name):
    """And then others' records behind it are judged, producers and epochs are those of what is left."""
    cut, offset = CUTS[name]
    for step in range(100):
        path = tmp_path / str(step)
        disk = MortalDisk()
        bench = Workbench(path, disk, segment_bytes=400, index_interval_bytes=100)
        for n in range(20):
            put_from(bench.log, 7, n, b"old%d" % n, epoch=1 + n // 8)
        bench.log.sync()
        bench.directory.checkpoint()
        bench.directory.write_high_watermarks({("t", 0): 20})
        disk.left = step
        whole = False
        try:
            cut(bench.log)
            whole = True
        except Killed:
            pass
        disk.left = None
        bench.stop(clean=False)
        log = bench.start()
        found = read_all(log)
        if log.start_offset == 0:
            assert found == [(n, b"old%d" % n) for n in range(len(found))], step
            assert log.end_offset == len(found), step
            epochs = [(1, 0), (2, 8), (3, 16)]
            assert log.epochs == [each for each in epochs if each[1] < len(found)], step
            last = [entry.batches[-1].last_offset for entry in log.producers()]
            assert last == ([len(found) - 1] if found else []), step
            if offset is not None:
                assert log.end_offset >= offset, step
        else:
            assert (found, log.start_offset) == ([], log.end_offset), step
        # Whatever is written now lies above the recovery point on disk.
        assert (on_disk(bench, RECOVERY_POINTS) or 0) <= log.end_offset, step
        bench.stop(clean=False)
        if whole:
            assert log.end_offset == {"all, from 3": 3, "all, from 100": 100}.get(name, offset)
            assert step > 2
            return
    raise AssertionError("the cut never ended")


def test_epochs_that_were_cut_away_do_not_come_back_with_their_file(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(10):
        put(bench.log, n, epoch=1 if n < 7 else 2)
    bench.log.settle()
    bench.log.sync()
    bench.directory.checkpoint()
    bench.log.truncate_to(7)
    # The next leader has written 7 and 8 in the old epoch, and goes on in its own.
    for n in (7, 8, 9):
        put(bench.log, n, epoch=1 if n < 9 else 3)
    assert bench.log.epochs == [(1, 0), (3, 9)]
    log = bench.restart(clean=False)
    assert log.epochs == [(1, 0), (3, 9)]
    bench.stop(clean=False)


def test_the_cleaner_hears_of_every_cut(tmp_path):
    bench = Workbench(tmp_path, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.1)
    cleaner = Cleaner(RealDisk())
    bench.directory.on_truncation = cleaner.truncate
    for n in range(20):
        put(bench.log, n, keys=[b"%d" % (n % 3)])
    bench.log.roll()
    cleaning = cleaner.plan([(bench.log, 20)], 1 << 60)
    while cleaner.install(cleaning, cleaning.clean()):
        pass
    assert cleaner.clean_offset(bench.log) == 20
    put(bench.log, b"x", keys=[b"x"])
    bench.log.truncate_to(12)
    assert cleaner.clean_offset(bench.log) == 12
    assert on_disk(bench, CLEANER_OFFSETS) == 12
    bench.log.truncate_fully_and_start_at(4)
    assert on_disk(bench, CLEANER_OFFSETS) == 4
    bench.stop(clean=False)


def test_a_segment_that_was_cut_and_grew_to_its_old_size_is_not_replaced(tmp_path):
    """The cleaner has read the old bytes: what it made of them is thrown away."""
    bench = Workbench(tmp_path, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.1)
    cleaner = Cleaner(RealDisk())
    bench.directory.on_truncation = cleaner.truncate
    for _ in range(10):
        put(bench.log, b"old", keys=[b"k"])
    bench.log.roll()
    cleaning = cleaner.plan([(bench.log, 10)], 1 << 60)
    slices = []
    while not slices or slices[-1].clean_offset is None:
        slices.append(cleaning.clean())  # all is read and written, nothing is installed yet
    bench.log.truncate_to(5)
    for _ in range(5):
        put(bench.log, b"new", keys=[b"k"])
    bench.log.roll()
    assert any(done.replacement is not None for done in slices)
    for done in slices:
        if not cleaner.install(cleaning, done):
            break
    assert read_all(bench.log) == [(n, b"old" if n < 5 else b"new") for n in range(10)]
    assert not cleaner.is_busy(bench.log)
    assert not list(Path(bench.log_path).glob("*.cleaned"))
    bench.stop(clean=False)


def test_a_cut_near_the_end_reads_little_though_all_have_one_time(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    for _ in range(300):
        put(bench.log, bytes(2000))
    sizes, read = [], RealFile.read

    def counted(self, position, size):
        data = read(self, position, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(RealFile, "read", counted)
    bench.log.truncate_to(299)
    assert sum(sizes) < 50_000
    segment = bench.log.segments[0]
    assert (segment.max_timestamp, segment.max_timestamp_offset) == (NOW, 0)
    bench.stop(clean=False)


@pytest.mark.parametrize("cut", [1, 7, 20, 21, 39])
def test_a_segment_that_was_cut_knows_its_greatest_timestamp(tmp_path, cut):
    bench = Workbench(tmp_path, index_interval_bytes=200)
    times = [NOW + (n * 7919) % 100 for n in range(40)]
    for time in times:
        put(bench.log, bytes(60), timestamp=time)
    bench.log.truncate_to(cut)
    segment = bench.log.segments[0]
    greatest = max(times[:cut])
    assert (segment.max_timestamp, segment.max_timestamp_offset) == (greatest, times.index(greatest))
    bench.stop(clean=False)
