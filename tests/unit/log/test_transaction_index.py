"""A transaction index that cannot be right is told again from the batches, when it is first asked."""

import errno
import struct

import pytest

from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.world.disk import RealDisk
from tests.unit.log.workbench import FaultyDisk, Workbench, end_transaction, put_from

ENTRY = struct.Struct(">hqqqq")


class Bench(Workbench):
    """A log of three segments, in each of which a transaction ends that began in the one before."""

    def fill(self):
        self.start_transaction(1, 0)
        self.log.roll()
        self.start_transaction(2, 0)
        end_transaction(self.log, 1, commit=False)
        self.log.roll()
        end_transaction(self.log, 2, commit=False)
        self.start_transaction(3, 0)
        end_transaction(self.log, 3, commit=True)
        return self.aborted()

    def start_transaction(self, producer_id, sequence):
        put_from(self.log, producer_id, sequence, 1, 2, transactional=True)

    def aborted(self):
        return self.log.aborted_transactions(0, self.log.end_offset)

    def index_path(self, number):
        return self.log.segments[number].transaction_index.path


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path, FaultyDisk())


DAMAGES = {
    "cut": lambda data: data[:-1],
    "grown": lambda data: data + b"\0",
    "one byte": lambda data: b"\0",
    "zeros": lambda data: bytes(len(data)),
    "another version": lambda data: b"\0\1" + data[2:],
    "a marker before its transaction": lambda data: ENTRY.pack(0, 1, 9, 3, 9),
    "a marker in an earlier segment": lambda data: ENTRY.pack(0, 1, 0, 1, 2),
    "a negative producer": lambda data: ENTRY.pack(0, -1, 0, 9, 9),
    "an entry twice": lambda data: data + data,
}


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_cannot_be_right_is_rebuilt(bench, damage, clean):
    aborted = bench.fill()
    assert aborted == [(1, 0), (2, 2)]
    bench.log.sync()
    bench.directory.checkpoint()
    path = bench.index_path(1)
    whole = bench.disk.read_bytes(path)
    bench.stop(clean=clean)
    bench.disk.write_atomic(path, damage(whole))
    bench.start()
    assert bench.aborted() == aborted
    assert [text for text in bench.warnings if path in text]
    assert bench.disk.read_bytes(path) == whole
    bench.warnings.clear()
    assert bench.restart().aborted_transactions(0, 4) == [(1, 0), (2, 2)]
    assert bench.warnings == []
    bench.stop()


def test_without_a_snapshot_the_earlier_segments_are_read(bench):
    aborted = bench.fill()
    path = bench.index_path(2)
    bench.stop()
    for name in bench.disk.list(bench.log_path):
        if name.endswith(".snapshot") and name < "00000000000000000007":
            bench.disk.remove(f"{bench.log_path}/{name}")
    bench.disk.write_atomic(path, b"torn")
    bench.start()
    assert bench.aborted() == aborted
    bench.stop()


def test_nothing_is_looked_through_before_it_is_asked_for(bench):
    bench.fill()
    path = bench.index_path(1)
    bench.stop()
    bench.disk.write_atomic(path, b"torn")
    log = bench.start()
    assert log.end_offset == 9
    assert bench.warnings == []
    assert bench.disk.read_bytes(path) == b"torn"
    bench.stop()


def test_all_who_ask_get_the_right_answer(bench):
    bench.fill()
    path = bench.index_path(1)
    bench.stop()
    bench.disk.write_atomic(path, b"torn")
    log = bench.start()
    # As the cleaner asks.
    (found,) = log.segments[1].transaction_index.entries()
    assert found == AbortedTransaction(1, 0, 4, 2)
    bench.stop()


def test_cutting_a_log_with_a_torn_index(bench):
    bench.fill()
    path = bench.index_path(2)
    bench.stop()
    bench.disk.write_atomic(path, b"torn")
    log = bench.start()
    log.truncate_to(6)
    assert bench.aborted() == [(1, 0), (2, 2)]
    log.truncate_to(5)
    assert bench.aborted() == [(1, 0)]
    assert log.first_unstable_offset == 2
    bench.stop()


def test_a_full_disk_does_not_keep_readers_from_the_truth(bench, monkeypatch):
    def refuse(path, data):
        raise OSError(errno.ENOSPC, "full")

    aborted = bench.fill()
    path = bench.index_path(1)
    bench.stop()
    bench.disk.write_atomic(path, b"torn")
    bench.start()
    with monkeypatch.context() as patched:
        patched.setattr(bench.disk, "write_atomic", refuse)
        assert bench.aborted() == aborted
        bench.log.rest()
        assert bench.aborted() == aborted
    assert bench.disk.read_bytes(path) == b"torn"
    bench.restart()
    assert bench.aborted() == aborted
    bench.stop()


def test_a_deleted_segment_takes_a_torn_index_with_it(bench):
    bench.fill()
    path = bench.index_path(1)
    bench.stop()
    bench.disk.write_atomic(path, b"x")
    log = bench.start()
    assert path in log.segments[1].paths()
    bench.stop()


def test_an_empty_index_is_sane(tmp_path):
    index = TransactionIndex(RealDisk(), f"{tmp_path}/x", 5, 0)
    assert index.is_sane()
    assert index.entries() == []


class Counted(struct.Struct):
    """An entry that counts how often one is unpacked."""

    unpacked = 0

    def unpack_from(self, *args):
        Counted.unpacked += 1
        return super().unpack_from(*args)

    def iter_unpack(self, data):
        for fields in super().iter_unpack(data):
            Counted.unpacked += 1
            yield fields


def test_a_question_looks_at_few_entries(tmp_path, monkeypatch):
    """Each read-committed Fetch decoded the whole index: 0.2 s with 100,000 aborted transactions."""
    index = TransactionIndex(RealDisk(), str(tmp_path / "0.txnindex"), 0, 0)
    for number in range(10_000):
        index.append(AbortedTransaction(number % 50, 2 * number, 2 * number + 1, 2 * number + 2))
    monkeypatch.setattr(TransactionIndex, "entry", Counted(index.entry.format))
    for start, end in ((0, 4), (10_001, 10_003), (19_999, 30_000), (30_000, 40_000)):
        Counted.unpacked, found = 0, []
        index.collect(start, end, found)
        assert Counted.unpacked < 20
        assert found == [each for each in index.entries() if each[2] >= start and each[1] < end]
