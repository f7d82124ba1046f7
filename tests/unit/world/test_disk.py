"""The operating system's directories: replacing a file, syncing, locking."""

import ctypes
import errno
import os
import subprocess
import sys

import pytest

from ottla.world import disk as disk_module
from ottla.world.disk import RealDisk

TAKE = """
import sys
from ottla.world.disk import RealDisk
try:
    RealDisk().lock(sys.argv[1])
except BlockingIOError as error:
    print(error)
else:
    print("taken")
"""


@pytest.fixture
def disk():
    return RealDisk()


@pytest.fixture
def calls(monkeypatch):
    """The calls that make things durable, or visible, in their order."""
    made = []
    for name in ("fsync", "replace", "write"):
        real = getattr(os, name)

        def noted(*arguments, name=name, real=real):
            made.append((name, os.readlink(f"/proc/self/fd/{arguments[0]}") if name == "fsync" else None))
            return real(*arguments)

        monkeypatch.setattr(os, name, noted)
    return made


def take_elsewhere(path):
    done = subprocess.run([sys.executable, "-c", TAKE, path], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_opening(disk, tmp_path):
    path = f"{tmp_path}/f"
    with pytest.raises(FileNotFoundError):
        disk.open(path, create=False)
    assert disk.open(path).size == 0
    assert os.path.exists(path)
    (tmp_path / "f").write_bytes(b"abc")
    assert disk.open(path).size == 3
    assert disk.open(path, create=False).size == 3
    # Who knows the size is believed, and nothing is looked up or made.
    assert disk.open(f"{tmp_path}/other", size=7).size == 7
    assert not os.path.exists(f"{tmp_path}/other")


def test_replacing_a_file(disk, tmp_path, calls):
    path = f"{tmp_path}/f"
    for data in (b"old and long", bytearray(b"new"), memoryview(b"")):
        calls.clear()
        disk.write_atomic(path, data)
        assert disk.read_bytes(path) == data
        # On the device before it has the name, and the name before anybody is told.
        assert [call for call in calls if call[0] != "write"] == [
            ("fsync", f"{path}.tmp"),
            ("replace", None),
            ("fsync", str(tmp_path)),
        ]
    assert disk.list(str(tmp_path)) == ["f"]


def test_a_replacement_is_written_whole(disk, tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:2]))
    disk.write_atomic(f"{tmp_path}/f", b"abcde")
    assert disk.read_bytes(f"{tmp_path}/f") == b"abcde"


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_failed_replacement_leaves_the_old_content(disk, tmp_path, monkeypatch, step):
    def refuse(*_):
        raise OSError(errno.EIO, "broken")

    path = f"{tmp_path}/f"
    disk.write_atomic(path, b"old")
    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, step, refuse)
        with pytest.raises(OSError, match="broken"):
            disk.write_atomic(path, b"new")
    assert disk.read_bytes(path) == b"old"
    assert len(os.listdir("/proc/self/fd")) == len(before)
    disk.write_atomic(path, b"n")
    assert disk.read_bytes(path) == b"n", "what a failed attempt left is of no consequence"


def test_directories(disk, tmp_path):
    root = f"{tmp_path}/a"
    disk.make_dirs(f"{root}/b/c")
    disk.make_dirs(f"{root}/b/c")
    (tmp_path / "a" / "z").write_bytes(b"12345")
    (tmp_path / "a" / "x").write_bytes(b"")
    assert disk.list(root) == ["b", "x", "z"]
    assert disk.list_sizes(root) == {"x": 0, "z": 5}
    assert disk.is_dir(f"{root}/b")
    assert not disk.is_dir(f"{root}/z")
    assert disk.exists(f"{root}/z")
    assert disk.size(f"{root}/z") == 5
    disk.rename(f"{root}/z", f"{root}/x")
    assert disk.read_bytes(f"{root}/x") == b"12345"
    disk.remove(f"{root}/x")
    disk.remove(f"{root}/x")
    disk.remove_tree(f"{root}/b")
    disk.remove_tree(f"{root}/b")
    assert disk.list(root) == []


def test_times_and_room(disk, tmp_path):
    (tmp_path / "f").write_bytes(b"")
    disk.set_modified_ms(f"{tmp_path}/f", 1_700_000_000_123)
    assert disk.modified_ms(f"{tmp_path}/f") == 1_700_000_000_123
    assert 0 < disk.free_bytes(str(tmp_path)) <= disk.total_bytes(str(tmp_path))


def test_one_process_holds_a_lock(disk, tmp_path):
    path = f"{tmp_path}/.lock"
    lock = disk.lock(path)
    assert take_elsewhere(path) == f"{path} is locked by another process"
    lock.release()
    lock.release()
    assert take_elsewhere(path) == "taken"
    # The other process has ended, and its hold with it.
    disk.lock(path).release()


@pytest.fixture
def syncfs(monkeypatch):
    """Stand in for the system call; the tests say what it answers."""

    class Syncfs:
        code = 0

        def __call__(self, fd):
            self.path = os.readlink(f"/proc/self/fd/{fd}")
            ctypes.set_errno(self.code)
            return -1 if self.code else 0

    call = Syncfs()
    monkeypatch.setattr(disk_module, "find_syncfs", lambda: call)
    return call


def test_syncing_a_file_system(disk, tmp_path, syncfs):
    assert disk.sync_filesystem(str(tmp_path))
    assert syncfs.path == str(tmp_path)


def test_a_file_system_that_cannot_be_synced(disk, tmp_path, syncfs):
    before = len(os.listdir("/proc/self/fd"))
    syncfs.code = errno.EIO
    with pytest.raises(OSError, match="Input/output error") as caught:
        disk.sync_filesystem(str(tmp_path))
    assert caught.value.errno == errno.EIO
    syncfs.code = errno.ENOSYS
    assert not disk.sync_filesystem(str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("release", "known"),
    [("6.18.44-x", True), ("5.8.0", True), ("5.4.0-150-generic", False), ("4.19", False), ("odd", False)],
)
def test_older_systems_do_not_say_whether_a_sync_worked(disk, tmp_path, monkeypatch, release, known):
    if sys.platform != "linux":
        pytest.skip("syncfs is Linux's own")
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:2], release, *uname[3:])))
    disk_module.find_syncfs.cache_clear()
    try:
        assert disk.sync_filesystem(str(tmp_path)) == known
    finally:
        disk_module.find_syncfs.cache_clear()
