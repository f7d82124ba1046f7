"""The three indexes: what stands in the file, what is found, what is cut."""

import os
import struct
from pathlib import Path

import pytest

from ottla.log.offset_index import OffsetIndex
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.world.disk import RealDisk

BASE = 1000


class CountingDisk(RealDisk):
    def __init__(self):
        super().__init__()
        self.opened = 0

    def open(self, path, *, create=True, size=None):
        self.opened += 1
        return super().open(path, create=create, size=size)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "00000000000000001000.x")


def offsets(path, *entries, disk=None):
    index = OffsetIndex(disk or RealDisk(), path, BASE, 0)
    for entry in entries:
        index.append(*entry)
    return index


def reopened(index):
    return type(index)(index.disk, index.path, index.base_offset, os.path.getsize(index.path))


def test_the_offset_index_file(path):
    index = offsets(path, (1010, 4100), (1025, 8300))
    assert index.flush()
    assert Path(path).read_bytes() == struct.pack(">iiii", 10, 4100, 25, 8300)
    assert not index.flush()
    index.append(1030, 9000)
    assert index.flush()
    assert Path(path).read_bytes()[16:] == struct.pack(">ii", 30, 9000)


@pytest.mark.parametrize("state", ["memory", "file", "both"])
def test_an_offset_is_found_wherever_the_entries_are(path, state):
    index = offsets(path, (1010, 4100), (1025, 8300))
    if state != "memory":
        index.flush()
        index = reopened(index)
    index.append(1040, 9999)
    if state == "file":
        index.flush()
        index.forget()
    found = [
        index.position_at_or_before(offset) for offset in (1000, 1009, 1010, 1024, 1025, 1039, 1040, 5000)
    ]
    assert found == [0, 0, 4100, 4100, 8300, 8300, 9999, 9999]
    assert index.newest() == (1040, 9999)
    assert [index.position_from(p) for p in (0, 4100, 9998, 20000)] == [None, 4100, 8300, 9999]


def test_a_look_up_near_the_end_reads_no_file(path):
    offsets(path, (1010, 4100), (1025, 8300)).flush()
    disk = CountingDisk()
    index = OffsetIndex(disk, path, BASE, 16)
    index.append(1040, 9999)
    assert index.position_at_or_before(1041) == 9999
    assert disk.opened == 0
    assert index.position_at_or_before(1012) == 4100
    assert disk.opened == 1
    assert index.position_at_or_before(1012) == 4100
    assert disk.opened == 1


@pytest.mark.parametrize(
    ("offset", "left"), [(1000, 0), (1010, 0), (1011, 1), (1025, 1), (1026, 2), (9999, 2)]
)
def test_the_offset_index_is_cut(path, offset, left):
    index = offsets(path, (1010, 4100), (1025, 8300))
    index.flush()
    index = reopened(index)
    index.truncate_to(offset)
    assert index.count == left
    assert os.path.getsize(path) == 8 * left
    index.append(2000, 10_000)
    index.flush()
    assert reopened(index).newest() == (2000, 10_000)


def test_an_offset_index_that_cannot_be(path):
    assert offsets(path).is_sane(0)
    assert offsets(path, (1010, 4100)).is_sane(5000)
    assert not offsets(path, (1010, 4100)).is_sane(4000)
    assert not offsets(path, (1010, 4100), (1000, 0)).is_sane(5000)
    assert not offsets(path, (900, 4100)).is_sane(5000)
    assert offsets(path, (1010, 4100), (1025, 8300)).ascends()
    assert not offsets(path, (1010, 4100), (1010, 8300)).ascends()
    assert not offsets(path, (1010, 4100), (1025, 4100)).ascends()
    assert not offsets(path, (1010, 4100), (1000, 0)).ascends()


def times(path, *entries):
    index = TimeIndex(RealDisk(), path, BASE, 0)
    for entry in entries:
        index.append(*entry)
    return index


def test_the_time_index_file_holds_growing_timestamps_alone(path):
    index = times(path, (500, 1010), (500, 1025), (400, 1030), (700, 1040))
    index.flush()
    assert Path(path).read_bytes() == struct.pack(">qiqi", 500, 10, 700, 40)
    index = reopened(index)
    index.append(700, 1050)
    assert index.count == 2
    index.append(701, 1050)
    assert index.newest() == (701, 1050)


def test_a_time_is_found(path):
    index = times(path, (500, 1010), (700, 1040))
    assert [index.offset_before(t) for t in (0, 499, 500, 699, 700, 900)] == [
        1000,
        1000,
        1010,
        1010,
        1040,
        1040,
    ]
    assert times(path).newest() == (-1, BASE)
    assert times(path).offset_before(5) == BASE


@pytest.mark.parametrize(("offset", "left"), [(1000, 0), (1010, 0), (1011, 1), (1040, 1), (1041, 2)])
def test_the_time_index_is_cut(path, offset, left):
    index = times(path, (500, 1010), (700, 1040))
    index.truncate_to(offset)
    assert index.count == left
    index.append(600, 1060)
    assert index.newest() == ((600, 1060) if left < 2 else (700, 1040))


def test_a_time_index_that_cannot_be(path):
    assert times(path).is_sane()
    assert times(path, (500, 1010)).is_sane()
    assert times(path, (500, 1010), (700, 1040)).is_sane()
    assert not times(path, (500, 900)).is_sane()
    assert not times(path, (500, 1010), (700, 1010)).is_sane()
    assert times(path, (500, 1010), (700, 1040)).ascends()


def test_the_transaction_index(path):
    index = TransactionIndex(RealDisk(), path, BASE, 0)
    first = AbortedTransaction(7, 1001, 1009, 1004)
    second = AbortedTransaction(8, 1004, 1030, 1031)
    index.append(first)
    index.append(second)
    assert not os.path.exists(path)
    index.flush()
    assert Path(path).read_bytes() == struct.pack(
        ">hqqqqhqqqq", 0, 7, 1001, 1009, 1004, 0, 8, 1004, 1030, 1031
    )
    index = reopened(index)
    assert index.entries() == [first, second]
    found = []
    assert not index.collect(1000, 1040, found)
    assert found == [first, second]
    found = []
    assert index.collect(1000, 1004, found)
    assert found == [first]
    found = []
    assert index.collect(1010, 1020, found)
    assert found == [second]
    index.truncate_to(1030)
    assert index.entries() == [first]
    assert os.path.getsize(path) == 34
    assert index.is_sane()


def test_a_failed_flush_loses_nothing(path):
    class Full(RealDisk):
        def open(self, path, *, create=True, size=None):
            raise OSError(28, "No space left on device")

    index = offsets(path, (1010, 4100), disk=Full())
    with pytest.raises(OSError, match="No space"):
        index.flush()
    index.disk = RealDisk()
    assert index.flush()
    assert os.path.getsize(path) == 8
