"""A file of the operating system: appends that are whole or absent, and descriptors that come and go."""

import errno
import os
import queue
import random
import threading

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


# Threads: only `sync` runs there


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_a_file_that_rests_is_opened_by_its_pin_and_not_by_the_thread(file, monkeypatch):
    """Else both the thread and the loop open it, and one descriptor is never given back."""
    file.append(b"ab")
    file.rest()
    before = open_descriptors()
    real = os.open

    def meanwhile(path, *rest):
        fd = real(path, *rest)
        monkeypatch.setattr(os, "open", real)
        file.append(b"cd")  # the loop has its turn while the thread opens
        return fd

    file.pins += 1
    monkeypatch.setattr(os, "open", meanwhile)
    thread = threading.Thread(target=file.sync)
    thread.start()
    thread.join()
    file.append(b"ef")
    file.pins -= 1
    file.close()
    assert open_descriptors() == before


@pytest.mark.parametrize("end", ["close", "rest"])
def test_a_file_given_up_under_a_sync_is_still_the_one_that_is_synced(file, monkeypatch, tmp_path, end):
    """As a truncation gives up segments; another file gets the number of a descriptor as soon as it is closed."""
    file.append(b"ab")
    inode, synced = os.fstat(file._fd).st_ino, []
    real = os.fdatasync

    def late(fd):
        getattr(file, end)()
        others.append(os.open(f"{tmp_path}/other", os.O_RDWR | os.O_CREAT))
        synced.append(os.fstat(fd).st_ino)
        real(fd)

    others = []
    monkeypatch.setattr(os, "fdatasync", late)
    file.pins += 1
    thread = threading.Thread(target=file.sync)
    thread.start()
    thread.join()
    assert synced == [inode]
    assert file._fd >= 0, "the thread may not be done"
    file.pins -= 1
    assert (file._fd < 0) == (end == "close")
    for fd in others:
        os.close(fd)


def test_a_file_that_was_removed_is_not_made_anew_by_a_sync(file):
    file.append(b"ab")
    file.rest()
    file.pins += 1
    file.close()
    os.unlink(file.path)
    file.sync()
    file.pins -= 1
    assert not os.path.exists(file.path)
    assert file._fd < 0


def test_a_pin_that_finds_no_descriptor_says_so_and_holds_nothing(file, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EMFILE, "too many")

    file.append(b"ab")
    file.rest()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="too many"):
            file.pins += 1
    assert file.pins == 0
    file.sync()


def test_a_thread_that_syncs_beside_a_loop_that_rests_appends_and_removes(tmp_path):
    """Real threads: no error, no descriptor left, no file that nobody made."""
    before, chance, failures = open_descriptors(), random.Random(11), []
    jobs, done = queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while (job := jobs.get()) is not None:
            try:
                job.sync()
            except OSError as error:
                failures.append(error)
            done.put(job)

    thread = threading.Thread(target=work)
    thread.start()
    file, made = RealFile(f"{tmp_path}/0", 0), 0
    for _ in range(400):
        file.append(b"x")
        if chance.random() < 0.5:
            file.rest()
        file.pins += 1
        jobs.put(file)
        if chance.random() < 0.5:
            file.append(b"y")
        if chance.random() < 0.5:
            file.rest()
        if chance.random() < 0.3:
            file.close()
            os.unlink(file.path)
            made += 1
            file = RealFile(f"{tmp_path}/{made}", 0)
            file.append(b"z")
        while chance.random() < 0.7 and not done.empty():
            done.get().pins -= 1
    jobs.put(None)
    thread.join()
    while not done.empty():
        done.get().pins -= 1
    file.close()
    assert not failures
    assert os.listdir(tmp_path) == [str(made)]
    assert open_descriptors() == before
