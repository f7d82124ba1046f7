"""Names that a truncation makes or takes away are on the device before what is written after it counts as durable."""

import pytest

from ottla.log.checkpoint import START_OFFSETS, read_offsets
from ottla.log.config import LogConfig
from ottla.log.synchronizer import DirectoryNames
from ottla.sim.cluster.disk import SimDisk
from ottla.wire.batch import build_batch, stamp
from ottla.wire.record import Record
from ottla.world.disk import pin_all, unpin_all
from ottla.world.entropy import SeededEntropy
from tests.faults.seeds import seeded
from tests.unit.log.workbench import NOW, Workbench, read_all

SMALL = 300


class NothingLeft(SeededEntropy):
    """Of what was not synced nothing survives."""

    def below(self, bound):
        return 0


@pytest.fixture
def bench():
    disk = SimDisk()
    disk.make_dirs("/d")
    made = Workbench("/d", disk, segment_bytes=SMALL)
    disk.sync_filesystem("/")
    return made


def store(log, offset, epoch, value, **producer):
    data = bytearray(build_batch([Record(0, NOW + offset, None, value)], **producer))
    stamp(data, 0, offset, epoch)
    log.append_as_follower(bytes(data))


def flush(log):
    """Sync as a flusher does."""
    files, end_offset = log.unsynced(), log.end_offset
    pin_all(files)
    for file in files:
        file.sync()
    unpin_all(files)
    log.synced(end_offset)


def lose_power(bench, entropy):
    bench.disk = bench.disk.after_power_loss(entropy)
    return bench.start()


def test_a_follower_that_begins_anew_keeps_what_it_synced_since(bench):
    for offset in range(5):
        store(bench.log, offset, 0, b"old%d" % offset)
    flush(bench.log)
    bench.disk.sync_filesystem("/")
    bench.log.truncate_fully_and_start_at(200)
    for offset in range(200, 203):
        store(bench.log, offset, 1, b"new%d" % offset)
    flush(bench.log)
    log = lose_power(bench, NothingLeft(1))
    assert read_all(log) == [(offset, b"new%d" % offset) for offset in range(200, 203)]


def test_one_that_begins_anew_is_synced_before_it_has_records_and_after(bench):
    store(bench.log, 0, 0, b"old")
    flush(bench.log)
    bench.log.truncate_fully_and_start_at(200)
    flush(bench.log)
    store(bench.log, 200, 1, b"new")
    flush(bench.log)
    assert read_all(lose_power(bench, NothingLeft(1))) == [(200, b"new")]


def test_a_segment_that_a_cut_removed_does_not_come_back_over_what_was_written_since(bench):
    for offset in range(12):
        store(bench.log, offset, 0, b"old%d" % offset)
    assert len(bench.log.segments) > 2
    flush(bench.log)
    bench.disk.sync_filesystem("/")
    bench.log.truncate_to(2)
    bench.log.config = LogConfig(segment_bytes=1 << 20)
    for offset in range(2, 9):
        store(bench.log, offset, 1, b"new%d" % offset)
    flush(bench.log)
    expected = read_all(bench.log)
    log = lose_power(bench, NothingLeft(1))
    assert len(log.segments) == 1
    assert read_all(log) == expected
    assert [log.read(offset, 1, log.end_offset) != b"" for offset in range(9)] == [True] * 9


def test_a_segment_that_comes_back_over_what_was_not_synced_is_removed_by_recovery(bench):
    for offset in range(12):
        store(bench.log, offset, 0, b"old%d" % offset)
    flush(bench.log)
    bench.disk.sync_filesystem("/")
    bench.log.truncate_to(2)
    bench.log.config = LogConfig(segment_bytes=1 << 20)
    for offset in range(2, 9):
        store(bench.log, offset, 1, b"new%d" % offset)
    bench.log.segments[0].file.sync()  # as the kernel may at any time, without the names
    log = lose_power(bench, NothingLeft(1))
    assert len(log.segments) == 1
    assert [value for _, value in read_all(log)] == [b"old0", b"old1"] + [b"new%d" % n for n in range(2, 9)]


def test_a_snapshot_of_producers_that_a_cut_removed_does_not_come_back(bench):
    for offset in range(12):
        store(bench.log, offset, 0, b"old", producer_id=7, producer_epoch=0, base_sequence=offset)
    flush(bench.log)
    bench.disk.sync_filesystem("/")
    bench.log.truncate_to(2)
    bench.log.config = LogConfig(segment_bytes=1 << 20)
    for offset in range(2, 12):
        store(bench.log, offset, 1, b"new", producer_id=8, producer_epoch=0, base_sequence=offset)
    flush(bench.log)
    bench.directory.checkpoint()
    log = lose_power(bench, NothingLeft(1))
    assert {entry.producer_id: entry.next_sequence for entry in log.producers()} == {7: 2, 8: 12}


def test_a_sync_that_began_before_a_cut_says_nothing_of_what_came_after_it(bench):
    for offset in range(6):
        store(bench.log, offset, 0, b"old%d" % offset)
    log = bench.log
    end_offset = log.end_offset
    log.unsynced()
    log.truncate_to(1)
    for offset in range(1, 6):
        store(log, offset, 1, b"new%d" % offset)
    log.synced(end_offset)
    assert log.recovery_point <= 1
    assert any(isinstance(file, DirectoryNames) for file in log.unsynced())


def test_what_deletion_has_hidden_stays_so_though_its_segment_comes_back(bench):
    for offset in range(12):
        store(bench.log, offset, 0, b"old%d" % offset)
    flush(bench.log)
    bench.disk.sync_filesystem("/")
    start_offset = bench.log.segments[-1].base_offset
    bench.log.raise_start_offset(start_offset)
    assert bench.log.delete_old_segments(NOW, 12)
    bench.directory.checkpoint()
    assert read_offsets(bench.disk, f"/d/{START_OFFSETS}")["t", 0] == start_offset
    assert lose_power(bench, NothingLeft(1)).start_offset == start_offset
    store(bench.log, 12, 0, b"more")
    bench.log.delete_old_segments(NOW, 13)
    flush(bench.log)
    bench.directory.checkpoint()
    assert read_offsets(bench.disk, f"/d/{START_OFFSETS}") == {}


def test_whatever_is_cut_and_lost_what_was_synced_is_there_and_nothing_else_is_where_it_was():
    """Followers that store, sync, are cut (within a segment, over several, wholly), and lose their power."""
    random = seeded(__file__)
    for _ in range(60):
        entropy = SeededEntropy(random.randrange(1 << 32))
        disk = SimDisk()
        disk.make_dirs("/d")
        bench = Workbench("/d", disk, segment_bytes=SMALL)
        disk.sync_filesystem("/")
        known, synced, epoch = {}, 0, 0
        for _ in range(60):
            log, step = bench.log, entropy.below(12)
            if step < 6:
                value = b"%d:%d" % (epoch, log.end_offset)
                known[log.end_offset] = value
                store(log, log.end_offset, epoch, value, producer_id=3, producer_epoch=0, base_sequence=log.end_offset)
            elif step < 8:
                flush(log)
                synced = log.end_offset
                if entropy.below(3) == 0:
                    bench.directory.checkpoint()
            elif step < 10:
                span = log.end_offset - log.start_offset + 1
                log.truncate_to(log.start_offset + entropy.below(span))
                known = {offset: value for offset, value in known.items() if offset < log.end_offset}
                synced, epoch = min(synced, log.end_offset), epoch + 1
            elif step == 10 and entropy.below(2):
                log.truncate_fully_and_start_at(log.end_offset + entropy.below(50))
                known, synced, epoch = {}, 0, epoch + 1
            elif entropy.below(2):
                log = lose_power(bench, entropy)
                found = dict(read_all(log))
                for offset, value in known.items():
                    assert found.get(offset) == value or offset >= synced, "what was synced is there"
                bases = [segment.base_offset for segment in log.segments]
                assert bases == sorted(set(bases))
                for offset in found:
                    assert log.read(offset, 1, log.end_offset), "what is there is found"
                if len(found) <= max(found, default=0) - log.start_offset:
                    break  # of what was not synced, something in the middle is gone
                if found:
                    assert [each.next_sequence for each in log.producers()] == [max(found) + 1]
                known, synced = found, log.end_offset
                bench.disk.sync_filesystem("/")
