"""A file of the operating system: appends that are whole or absent, and descriptors that come and go."""

import errno
import os

import pytest

from ottla.world.disk import RealDisk, RealFile


@pytest.fixture
def file(tmp_path):
    file = RealDisk().open(f"{tmp_path}/f")
    yield file
    file.close()


def content(file):
    with open(file.path, "rb") as reader:
        return reader.read()


class Pwrite:
    """An os.pwrite that writes as many bytes as the plan says, or raises the errno it says, call by call."""

    def __init__(self, monkeypatch, *plan):
        self._plan = list(plan)
        self._real = os.pwrite
        self.calls = []
        monkeypatch.setattr(os, "pwrite", self)

    def __call__(self, fd, data, position):
        self.calls.append((position, len(data)))
        step = self._plan.pop(0) if self._plan else len(data)
        if isinstance(step, OSError):
            raise step
        return self._real(fd, memoryview(data)[:step], position)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_appends_follow_one_another(file, kind):
    file.append(kind(b"one"))
    file.append(kind(b"two"))
    assert file.size == 6
    assert content(file) == b"onetwo"
    assert file.read(2, 3) == b"etw"
    assert file.read(4, 100) == b"wo"
    assert file.read(6, 1) == b""


def test_a_short_write_is_finished(file, monkeypatch):
    file.append(b"old")
    pwrite = Pwrite(monkeypatch, 2, 1)
    file.append(b"abcdef")
    assert pwrite.calls == [(3, 6), (5, 4), (6, 3)]
    assert file.size == 9
    assert content(file) == b"oldabcdef"


@pytest.mark.parametrize(
    "plan",
    [
        [OSError(errno.ENOSPC, "full")],
        [2, OSError(errno.ENOSPC, "full")],
        [2, 3, OSError(errno.EIO, "broken")],
    ],
    ids=["at once", "after a short write", "after two"],
)
def test_a_failed_append_leaves_nothing(file, monkeypatch, plan):
    file.append(b"old")
    Pwrite(monkeypatch, *plan)
    with pytest.raises(OSError, match="full|broken"):
        file.append(b"abcdef")
    assert file.size == 3
    assert content(file) == b"old"
    file.append(b"new")
    assert content(file) == b"oldnew"


def test_the_cause_of_a_failed_append_is_told_even_if_the_cut_fails_too(file, monkeypatch):
    def refuse(fd, size):
        raise OSError(errno.EROFS, "read-only")

    file.append(b"old")
    Pwrite(monkeypatch, 2, OSError(errno.EIO, "broken"))
    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(OSError, match="broken"):
        file.append(b"abcdef")
    assert file.size == 3
    file.append(b"xyz")
    assert content(file) == b"oldxyz"


def test_writing_in_place(file, monkeypatch):
    file.append(b"0123456789")
    Pwrite(monkeypatch, 1)
    file.write_at(2, b"abc")
    assert (file.size, content(file)) == (10, b"01abc56789")
    file.write_at(8, b"xyz")
    assert (file.size, content(file)) == (11, b"01abc567xyz")


def test_truncation(file):
    file.append(b"0123456789")
    file.truncate(4)
    assert file.size == 4
    file.append(b"x")
    assert content(file) == b"0123x"


def test_a_handle_opens_nothing_before_it_is_used(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    file = RealFile(f"{tmp_path}/f", 3)
    assert file._fd < 0
    assert file.read(0, 3) == b"abc"
    assert file._fd >= 0
    file.close()


@pytest.mark.parametrize(
    "use",
    [
        lambda file: file.append(b"x"),
        lambda file: file.read(0, 1),
        lambda file: file.write_at(0, b"x"),
        lambda file: file.truncate(1),
        lambda file: file.sync(),
    ],
    ids=["append", "read", "write_at", "truncate", "sync"],
)
def test_a_rested_file_wakes_with_any_use(file, use):
    file.append(b"ab")
    file.rest()
    assert file._fd < 0
    file.rest()
    use(file)
    assert file._fd >= 0


def test_a_pinned_file_keeps_its_descriptor(file):
    file.append(b"ab")
    fd = file._fd
    file.pins = 2
    file.rest()
    file.pins -= 1
    file.rest()
    assert file._fd == fd
    file.pins -= 1
    file.rest()
    assert file._fd < 0


def test_the_descriptor_is_not_handed_to_children(file):
    file.append(b"x")
    assert not os.get_inheritable(file._fd)


def test_a_failed_sync_is_told(file, monkeypatch):
    def refuse(fd):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(OSError, match="broken"):
        file.sync()
