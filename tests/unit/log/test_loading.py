"""What a start makes of the files a stop, a crash, or an interrupted exchange has left."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from ottla.log import names
from ottla.log.segment import Segment
from ottla.wire.batch import build_batch
from ottla.wire.errors import BrokerError
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from tests.unit.log.workbench import NOW, TOPIC_ID, FaultyDisk, Workbench, put, put_from, read_all


@pytest.fixture
def bench(tmp_path):
    return Workbench(tmp_path, segment_bytes=400, index_interval_bytes=100)


def fill(log, count=20):
    for n in range(count):
        put_from(log, 5, n, n, timestamp=NOW + n, epoch=n // 8)


EXPECTED = [(n, b"%d" % n) for n in range(20)]


def stem(bench, offset):
    return f"{bench.log_path}/{names.segment_stem(offset)}"


def test_a_clean_start_reads_no_batches_but_the_tail(tmp_path):
    disk = FaultyDisk()
    bench = Workbench(tmp_path, disk, segment_bytes=4000, index_interval_bytes=100)
    for n in range(200):
        put_from(bench.log, 5, n, n)
    bench.stop()
    reads = []

    class Watching(RealDisk):
        def open(self, path, *, create=True, size=None):
            file = super().open(path, create=create, size=size)

            class Watched:
                def __getattr__(self, name):
                    if name == "read":
                        return self._read
                    return getattr(file, name)

                def _read(self, position, size):
                    data = file.read(position, size)
                    reads.append((os.path.basename(path), position, len(data)))
                    return data

            return Watched()

    bench.disk = Watching()
    log = bench.start()
    assert reads == []
    assert log.end_offset == 200
    active = os.path.basename(log.segments[-1].file.path)
    batches = [(position, size) for name, position, size in reads if name.endswith(".log")]
    assert {name for name, *_ in reads if name.endswith(".log")} == {active}
    assert len(batches) == 1
    assert batches[0][1] < 400
    assert len(reads) <= 3
    assert put_from(log, 5, 200, 200).base_offset == 200
    bench.stop(clean=False)


def test_nothing_is_rewritten_by_a_clean_stop_without_appends(bench):
    fill(bench.log)
    bench.stop()
    before = {name: os.stat(f"{bench.log_path}/{name}").st_mtime_ns for name in os.listdir(bench.log_path)}
    log = bench.start()
    assert read_all(log) == EXPECTED
    bench.stop()
    after = {name: os.stat(f"{bench.log_path}/{name}").st_mtime_ns for name in os.listdir(bench.log_path)}
    assert before == after


def test_a_crash_keeps_what_is_whole_and_rebuilds_the_rest(bench):
    fill(bench.log)
    bench.stop(clean=False)
    for name in os.listdir(bench.log_path):
        if name.endswith(("index", ".snapshot", "checkpoint")):
            os.unlink(f"{bench.log_path}/{name}")
    log = bench.start()
    assert read_all(log) == EXPECTED
    assert put_from(log, 5, 19, 19).duplicate
    assert log.end_offset_for_epoch(1) == (1, 16)
    bench.stop()
    log = bench.start()
    assert read_all(log) == EXPECTED
    assert log.recovery_point == 20


def test_segments_behind_the_cut_go(bench):
    fill(bench.log)
    bench.stop(clean=False)
    bases = [segment.base_offset for segment in bench.log.segments]
    with open(stem(bench, bases[1]) + ".log", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    log = bench.start()
    assert log.end_offset == bases[2] - 1
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert not os.path.exists(stem(bench, bases[3]) + ".log")
    assert not os.path.exists(stem(bench, bases[3]) + ".index")
    assert not os.path.exists(stem(bench, bases[3]) + ".snapshot")
    assert put(log, b"next").base_offset == log.end_offset - 1


def test_what_lies_below_the_recovery_point_is_not_judged(bench):
    fill(bench.log)
    bench.log.sync()
    bench.directory.checkpoint()
    bench.stop(clean=False)
    first = stem(bench, 0) + ".log"
    content = bytearray(Path(first).read_bytes())
    content[70] ^= 1
    Path(first).write_bytes(content)
    log = bench.start()
    assert log.end_offset == 20
    assert Path(first).read_bytes() == content


def test_offsets_that_do_not_rise_end_the_log(bench):
    put(bench.log, 0)
    put(bench.log, 1)
    bench.stop(clean=False)
    with open(stem(bench, 0) + ".log", "ab") as file:
        file.write(build_batch([Record(0, NOW, None, b"again")], base_offset=1))
    log = bench.start()
    assert read_all(log) == [(0, b"0"), (1, b"1")]
    assert bench.warnings


def test_a_padded_index_of_a_crashed_kafka_is_rebuilt(bench):
    fill(bench.log)
    bench.log.sync()
    bench.directory.checkpoint()
    bench.stop(clean=False)
    active = bench.log.segments[-1]
    for path in (active.offset_index.path, active.time_index.path):
        with open(path, "r+b") as file:
            file.truncate(1200)
    log = bench.start()
    assert read_all(log) == EXPECTED
    assert log.segments[-1].offset_index.ascends()
    assert log.offset_for_timestamp(NOW + 19).offset == 19


def test_leftovers_are_removed(bench):
    fill(bench.log)
    bench.stop()
    for name in (
        f"{names.segment_stem(0)}.log.deleted",
        f"{names.segment_stem(0)}.index.deleted",
        f"{names.segment_stem(0)}.log.cleaned",
        f"{names.segment_stem(0)}.timeindex.cleaned",
        f"{names.segment_stem(999)}.index",
        f"{names.segment_stem(999)}.txnindex",
    ):
        Path(f"{bench.log_path}/{name}").write_bytes(b"x")
    kept = "00000000000000000007-0000000001.checkpoint.deleted"
    Path(f"{bench.log_path}/{kept}").write_bytes(b"a snapshot of the metadata log")
    log = bench.start()
    assert read_all(log) == EXPECTED
    left = os.listdir(bench.log_path)
    assert not [name for name in left if name.endswith((".deleted", ".cleaned")) and name != kept]
    assert kept in left
    assert not [name for name in left if name.startswith(names.segment_stem(999))]


def test_a_log_that_ends_before_its_start_begins_anew(bench):
    fill(bench.log)
    bench.log.raise_start_offset(15)
    bench.stop()
    shutil.rmtree(bench.log_path)
    os.mkdir(bench.log_path)
    log = bench.start()
    assert (log.start_offset, log.end_offset) == (15, 15)
    assert put(log, 15).base_offset == 15


# Exchange of cleaned segments


def cleaned(bench, base_offset, offsets):
    segment = Segment.create(bench.disk, bench.log_path, base_offset, names.CLEANED)
    for offset in offsets:
        record = Record(offset, NOW + offset, None, b"%d" % offset)
        segment.append(build_batch([record], base_offset=offset, leader_epoch=0), 100)
    segment.retire()
    return segment


def test_an_exchange(bench):
    log = bench.log
    fill(log)
    old = log.segments[:3]
    end = log.segments[3].base_offset
    log.replace_segments([cleaned(bench, 0, [2, 5, 9])], old)
    expected = [(2, b"2"), (5, b"5"), (9, b"9"), *EXPECTED[end:]]
    assert read_all(log) == expected
    assert log.start_offset == 0
    assert not [name for name in os.listdir(bench.log_path) if name.endswith((".cleaned", ".swap"))]
    assert read_all(bench.restart()) == expected
    assert read_all(bench.restart(clean=False)) == expected


def test_an_exchange_that_had_not_begun_is_undone(bench):
    fill(bench.log)
    bench.log.sync()
    second = bench.log.segments[1].base_offset
    cleaned(bench, second, [second + 1]).rename(names.SWAP)
    cleaned(bench, 0, [1])
    log = bench.restart()
    assert read_all(log) == EXPECTED
    assert not [name for name in os.listdir(bench.log_path) if name.endswith((".cleaned", ".swap"))]


class Interrupted(Exception):
    pass


def test_an_exchange_interrupted_anywhere(tmp_path):
    """Stop after every single rename: the start finds the old segments or the new ones, and never a mixture."""

    class Interrupting(RealDisk):
        left = 1 << 30

        def rename(self, source, target):
            if self.left == 0:
                raise Interrupted
            self.left -= 1
            super().rename(source, target)

    outcomes = set()
    for renames in range(40):
        bench = Workbench(
            tmp_path / str(renames), Interrupting(), segment_bytes=400, index_interval_bytes=100
        )
        fill(bench.log)
        bench.log.settle()
        bench.log.sync()
        bench.directory.checkpoint()
        end = bench.log.segments[3].base_offset
        new = cleaned(bench, 0, [2, 5, 9])
        bench.disk.left = renames
        try:
            bench.log.replace_segments([new], bench.log.segments[:3])
            done = True
        except Interrupted:
            done = False
        bench.disk.left = 1 << 30
        found = read_all(bench.restart(clean=False))
        expected = [(2, b"2"), (5, b"5"), (9, b"9"), *EXPECTED[end:]]
        # Where the new segment ends before the old ones did, the last of these may stay, as in Kafka.
        before = [record for record in found if record[0] < 10]
        assert before in (EXPECTED[:10], expected[:3])
        assert [record for record in found if record[0] >= 10] in (EXPECTED[10:], EXPECTED[end:])
        outcomes.add(before == expected[:3])
        assert not done or found == expected
        assert read_all(bench.restart(clean=True)) == found
        if done:
            break
    assert done
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    ("code", "fatal"), [(errno.EIO, True), (errno.EMFILE, False)], ids=["broken", "crowded"]
)
def test_a_log_that_cannot_be_opened_sleeps_on(tmp_path, code, fatal):
    bench = Workbench(tmp_path, FaultyDisk())
    put(bench.log, 1)
    log = bench.restart()
    bench.disk.fail("list", "t-0", code)
    for touch in (lambda: log.end_offset, lambda: log.size_bytes, lambda: put(log, 2), lambda: log.topic_id):
        with pytest.raises(BrokerError) as caught:
            touch()
        assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
        assert log.is_dormant
    assert (bench.directory.offline is not None) == fatal
    bench.disk.heal()
    assert log.topic_id == TOPIC_ID
    assert read_all(log) == [(0, b"1")]
    bench.stop()


def test_epochs_that_a_crash_has_emptied_are_told_from_the_batches(bench):
    log = bench.log
    for epoch in range(3):
        put(log, epoch, epoch=epoch)
    log.settle()
    log.sync()
    bench.directory.checkpoint()
    bench.stop(clean=False)
    Path(bench.log_path, "leader-epoch-checkpoint").write_bytes(b"")
    log = bench.start()
    assert [log.end_offset_for_epoch(epoch) for epoch in range(3)] == [(0, 1), (1, 2), (2, 3)]
    bench.stop()


def test_a_short_log_is_stopped_without_a_snapshot(tmp_path):
    bench = Workbench(tmp_path)
    put(bench.log, 1)
    log = bench.restart()
    assert not [name for name in os.listdir(bench.log_path) if name.endswith(".snapshot")]
    bench.stop()
    # With producers it has one: Apache Kafka looks for them there alone.
    bench = Workbench(tmp_path / "producers")
    put_from(bench.log, 8, 0, 0)
    for n in range(2):
        put_from(bench.log, 7, n, n)
    log = bench.restart()
    assert [name for name in os.listdir(bench.log_path) if name.endswith(".snapshot")] == [
        f"{3:020d}.snapshot"
    ]
    assert put_from(log, 7, 1, 1).duplicate
    assert put_from(log, 7, 2, 2).base_offset == 3
    # What its records no longer tell is kept in a snapshot.
    log.raise_start_offset(2)
    log = bench.restart()
    assert [name for name in os.listdir(bench.log_path) if name.endswith(".snapshot")] == [
        f"{4:020d}.snapshot"
    ]
    assert put_from(log, 8, 0, 0).duplicate
    assert put_from(log, 7, 2, 2).duplicate
    for n in range(3, 24):
        put_from(log, 7, n, b"x" * 1000)
    log = bench.restart()
    assert put_from(log, 7, 23, b"x" * 1000).duplicate
    bench.stop()
