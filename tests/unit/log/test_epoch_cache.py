"""Leader epochs: assigned, asked for, cut, kept."""

import os

import pytest

from ottla.log.checkpoint import CheckpointError
from ottla.log.epoch_cache import EpochCache
from ottla.world.disk import RealDisk


@pytest.fixture
def cache(tmp_path):
    cache = EpochCache(RealDisk(), str(tmp_path))
    for epoch, offset in ((2, 0), (3, 10), (5, 20)):
        cache.assign(epoch, offset)
    return cache


def test_an_epoch_begins_once(cache):
    cache.assign(5, 30)
    cache.assign(-1, 40)
    assert cache.entries == [(2, 0), (3, 10), (5, 20)]
    assert cache.latest == 5


@pytest.mark.parametrize(
    ("epoch", "offset", "expected"),
    [
        (6, 30, [(2, 0), (3, 10), (5, 20), (6, 30)]),
        (6, 20, [(2, 0), (3, 10), (6, 20)]),
        (6, 15, [(2, 0), (3, 10), (6, 15)]),
        (5, 15, [(2, 0), (3, 10), (5, 15)]),
        (3, 30, [(2, 0), (3, 30)]),
        (1, 0, [(1, 0)]),
    ],
)
def test_a_new_epoch_pushes_out_what_contradicts_it(cache, epoch, offset, expected):
    cache.assign(epoch, offset)
    assert cache.entries == expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (5, (5, 99)),
        (6, (-1, -1)),
        (4, (3, 20)),
        (3, (3, 20)),
        (2, (2, 10)),
        (1, (1, 0)),
        (0, (0, 0)),
    ],
)
def test_where_an_epoch_ends(cache, epoch, expected):
    assert cache.end_offset_for(epoch, 99) == expected


def test_no_epoch_is_known(tmp_path):
    cache = EpochCache(RealDisk(), str(tmp_path))
    assert cache.end_offset_for(3, 99) == (-1, -1)
    assert cache.end_offset_for(-1, 99) == (-1, -1)
    assert cache.epoch_for(0) is None


def test_the_epoch_of_an_offset(cache):
    assert [cache.epoch_for(offset) for offset in (0, 9, 10, 19, 20, 100)] == [2, 2, 3, 3, 5, 5]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (25, [(2, 0), (3, 10), (5, 20)]),
        (20, [(2, 0), (3, 10)]),
        (11, [(2, 0), (3, 10)]),
        (10, [(2, 0)]),
        (0, []),
    ],
)
def test_cut_from_the_end(cache, offset, expected):
    cache.truncate_from_end(offset)
    assert cache.entries == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, [(2, 0), (3, 10), (5, 20)]),
        (5, [(2, 5), (3, 10), (5, 20)]),
        (10, [(3, 10), (5, 20)]),
        (15, [(3, 15), (5, 20)]),
        (40, [(5, 40)]),
    ],
)
def test_cut_from_the_start(cache, offset, expected):
    cache.truncate_from_start(offset)
    assert cache.entries == expected


def test_the_file_is_kafkas(cache, tmp_path):
    assert cache.flush() == str(tmp_path / "leader-epoch-checkpoint")
    file = tmp_path / "leader-epoch-checkpoint"
    assert file.read_text() == "0\n3\n2 0\n3 10\n5 20\n"
    assert EpochCache.read(RealDisk(), str(tmp_path)).entries == cache.entries
    assert os.listdir(tmp_path) == [file.name]
    file.unlink()
    assert cache.flush() is None
    assert not file.exists()
    cache.clear()
    cache.flush()
    assert file.read_text() == "0\n0\n"


@pytest.mark.parametrize(
    "text", ["0\n1\n1\n", "0\n1\nx 0\n", "0\n2\n2 0\n1 10\n", "0\n2\n2 10\n3 0\n", "7\n0\n"]
)
def test_a_file_that_makes_no_sense(tmp_path, text):
    (tmp_path / "leader-epoch-checkpoint").write_text(text)
    with pytest.raises(CheckpointError):
        EpochCache.read(RealDisk(), str(tmp_path))


def test_a_few_epochs_are_written_in_place_and_many_beside(tmp_path, cache):
    path = tmp_path / "leader-epoch-checkpoint"
    cache.flush()
    inode = path.stat().st_ino
    cache.truncate_from_end(15)
    cache.flush()
    assert path.read_text() == "0\n2\n2 0\n3 10\n", "nothing is left of the longer content"
    assert path.stat().st_ino == inode
    for epoch in range(10, 100):
        cache.assign(epoch, epoch * 10)
    cache.flush()
    assert path.stat().st_ino != inode
    assert EpochCache.read(RealDisk(), str(tmp_path)).entries == cache.entries
    assert os.listdir(tmp_path) == ["leader-epoch-checkpoint"]


def test_a_cut_number_is_not_taken_for_another(tmp_path, cache):
    cache.flush()
    path = tmp_path / "leader-epoch-checkpoint"
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        try:
            assert EpochCache.read(RealDisk(), str(tmp_path)).entries == []
            assert cut == 2, "what names no count may be anybody's empty file"
        except CheckpointError:
            pass
