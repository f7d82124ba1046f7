"""Files: append-mostly handles, and the few directory operations a log needs.

D1  `File.append` writes all of its bytes at `size`, or raises OSError and leaves the file as long as it was.
D2  `write_atomic` leaves either the old content or the new one, whatever happens in between.
D3  A handle opens its descriptor on first use, and `rest()` closes it until the next use, so that thousands of logs
    need not hold thousands of descriptors. All of that happens on the loop; `sync` alone runs in threads, and only
    while the file is pinned. To pin a file opens it, and a pinned one is closed when the last pin goes, whoever asks
    for that sooner: so a thread neither opens a descriptor, nor finds one that is closed or another file's by then.
D4  A handle gives its descriptor back by itself where too many are open (`open_files.py`).

Buffers are anything with the buffer protocol; paths are plain strings.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Protocol

from ottla.world.held_directory import HeldDirectory, RealDirectory
from ottla.world.open_files import NO_DESCRIPTORS, OpenFiles
from ottla.world.syncfs import find_syncfs

__all__ = ["NO_DESCRIPTORS"]  # what a sync says that could not begin
Bytes = bytes | bytearray | memoryview


class File(Protocol):
    """An open file that grows at its end."""

    path: str
    size: int
    pins: int  # how many threads are at work on it: it is open as long (D3); to raise it may fail as `open` does

    def append(self, data: Bytes) -> None:
        """Write `data` at the end, wholly or not at all."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`."""
        ...

    def write_at(self, position: int, data: Bytes) -> None:
        """Overwrite bytes in place, growing the file where needed."""
        ...

    def sync(self) -> None:
        """Return once the data is on the device."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        ...

    def rest(self) -> None:
        """Give the descriptor back; the next use opens it again."""
        ...

    def close(self) -> None:
        """Give the descriptor back for good."""
        ...


def pin_all(files: Iterable[File]) -> None:
    """Pin files for a thread, all or, when one cannot be opened, none."""
    pinned: list[File] = []
    try:
        for file in files:
            file.pins += 1
            pinned.append(file)
    except BaseException:
        with contextlib.suppress(OSError):
            unpin_all(pinned)
        raise


def unpin_all(files: Iterable[File]) -> None:
    """Take the pins of a thread away, all of them; raise the first error of those that are closed with it."""
    failure: OSError | None = None
    for file in files:
        try:
            file.pins -= 1
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


class Lock(Protocol):
    """An exclusive hold on a directory."""

    def release(self) -> None:
        """Let go."""
        ...


class Disk(Protocol):
    """Where files live."""

    def open(self, path: str, *, create: bool = True, size: int | None = None) -> File:
        """Return a handle; a caller that knows the size saves the look-up."""
        ...

    def absolute(self, path: str) -> str:
        """Return the whole path, for those who work elsewhere."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether anything is at `path`."""
        ...

    def is_dir(self, path: str) -> bool:
        """Say whether a directory is at `path`."""
        ...

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def list_sizes(self, path: str) -> dict[str, int]:
        """Return the plain files of a directory with their sizes."""
        ...

    def make_dirs(self, path: str) -> None:
        """Make a directory and its parents."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move, replacing what stands at `target`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; an absent one is fine."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it; an absent one is fine."""
        ...

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written."""
        ...

    def set_modified_ms(self, path: str, ms: int) -> None:
        """Set when a file was last written."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Return a whole file."""
        ...

    def write_atomic(self, path: str, data: Bytes) -> None:
        """Replace a file so that a crash leaves the old content or the new."""
        ...

    def sync_dir(self, path: str) -> None:
        """Make renames and new names in a directory durable."""
        ...

    def hold_dir(self, path: str) -> HeldDirectory:
        """Open a directory, for a thread that is to sync its names."""
        ...

    def sync_filesystem(self, path: str) -> bool:
        """Make everything on the file system of `path` durable; False when this cannot be done, or not reliably."""
        ...

    def limit_open(self, files_max: Callable[[], int]) -> Callable[[], None]:
        """Keep no more files open than that; call what is returned when it has become less."""
        ...

    def free_bytes(self, path: str) -> int:
        """Return the room left on the file system."""
        ...

    def total_bytes(self, path: str) -> int:
        """Return the size of the file system."""
        ...

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock, or raise BlockingIOError."""
        ...


_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class RealFile:
    """A file of the operating system, addressed by position, so reads and appends never share a cursor."""

    __slots__ = ("_fd", "_is_done", "_open_files", "_pins", "path", "size")

    def __init__(self, path: str, size: int, open_files: OpenFiles | None = None) -> None:
        self.path = path
        self._open_files = open_files
        self.size = size
        self._pins = 0
        self._is_done = False  # to be closed with the last pin
        self._fd = -1

    @property
    def pins(self) -> int:
        """How many threads are at work on it (D3)."""
        return self._pins

    @pins.setter
    def pins(self, count: int) -> None:
        if self._fd < 0 and count > self._pins:
            self._open(pins=True)
        if self._open_files is not None:
            self._open_files.pinned += (count > 0) - (self._pins > 0)
        self._pins = count
        if count == 0 and self._is_done:
            self.close()

    def _open(self, *, pins: bool = False) -> int:
        if self._open_files is None:
            fd = os.open(self.path, _FLAGS, 0o644)
        else:
            fd = self._open_files.open(self, self.path, _FLAGS, pins=pins)
        self._fd = fd
        return fd

    def append(self, data: Bytes) -> None:
        """Write `data` at the end, wholly or not at all."""
        fd = self._fd
        if fd < 0:
            fd = self._open()
        size = self.size
        length = len(data)
        try:
            written = os.pwrite(fd, data, size)
            if written != length:
                self._finish(fd, memoryview(data), written)
        except OSError:
            # A torn tail would be read back as a bad batch, so it goes before anyone can see it.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            raise
        self.size = size + length

    def _finish(self, fd: int, data: memoryview, written: int) -> None:
        """Write what a short write left over; the kernel names the error on the second try."""
        while written < len(data):
            written += os.pwrite(fd, data[written:], self.size + written)

    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`."""
        fd = self._fd
        if fd < 0:
            fd = self._open()
        return os.pread(fd, size, position)

    def write_at(self, position: int, data: Bytes) -> None:
        """Overwrite bytes in place, growing the file where needed."""
        fd = self._fd if self._fd >= 0 else self._open()
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(fd, view[done:], position + done)
        self.size = max(self.size, position + len(view))

    def sync(self) -> None:
        """Return once the data is on the device."""
        fd = self._fd if self._fd >= 0 else self._open()
        os.fdatasync(fd)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        fd = self._fd if self._fd >= 0 else self._open()
        os.ftruncate(fd, size)
        self.size = size

    def rest(self) -> None:
        """Give the descriptor back; the next use opens it again. A pinned file stays open."""
        if self._pins == 0:
            self.close()

    def close(self) -> None:
        """Give the descriptor back, as soon as no thread is at work on it."""
        self._is_done = self._pins > 0
        if self._fd >= 0 and not self._is_done:
            fd, self._fd = self._fd, -1
            if self._open_files is not None:
                self._open_files.forget(self)
            os.close(fd)


class RealLock:
    """An flock on a lock file, as Kafka takes on `.lock`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Let go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealDisk:
    """The operating system's files."""

    def __init__(self) -> None:
        self._open_files = OpenFiles()

    def limit_open(self, files_max: Callable[[], int]) -> Callable[[], None]:
        """Keep no more files open than that; call what is returned when it has become less."""
        return self._open_files.limit(files_max)

    def open(self, path: str, *, create: bool = True, size: int | None = None) -> RealFile:
        """Return a handle; a caller that already knows the size saves the look-up."""
        if size is None:
            try:
                size = os.stat(path).st_size
            except FileNotFoundError:
                if not create:
                    raise
                os.close(self._open_files.attempt(lambda: os.open(path, _FLAGS, 0o644)))
                size = 0
        return RealFile(path, size, self._open_files)

    def absolute(self, path: str) -> str:
        """Return the whole path, for those who work elsewhere."""
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        """Say whether anything is at `path`."""
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        """Say whether a directory is at `path`."""
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._open_files.attempt(lambda: os.listdir(path)))

    def list_sizes(self, path: str) -> dict[str, int]:
        """Return the plain files of a directory with their sizes, in one pass."""
        with self._open_files.attempt(lambda: os.scandir(path)) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def make_dirs(self, path: str) -> None:
        """Make a directory and its parents."""
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move, replacing what stands at `target`."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; an absent one is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it; an absent one is fine."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, ms: int) -> None:
        """Set when a file was last written, as the cleaner does for the segments it rewrites."""
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def read_bytes(self, path: str) -> bytes:
        """Return a whole file."""
        with self._open_files.attempt(lambda: open(path, "rb")) as file:
            return file.read()

    def write_atomic(self, path: str, data: Bytes) -> None:
        """Replace a file so that a crash leaves the old content or the new."""
        temporary = path + ".tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        fd = self._open_files.attempt(lambda: os.open(temporary, flags, 0o644))
        try:
            view = memoryview(data)
            done = 0
            while done < len(view):
                done += os.write(fd, view[done:])
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        self.sync_dir(os.path.dirname(path) or ".")

    def sync_dir(self, path: str) -> None:
        """Make renames and new names in a directory durable."""
        held = self._open_files.attempt(lambda: RealDirectory(path))
        try:
            held.sync()
        finally:
            held.close()

    def hold_dir(self, path: str) -> RealDirectory:
        """Open a directory, for a thread that is to sync its names."""
        return RealDirectory(path, self._open_files)

    def sync_filesystem(self, path: str) -> bool:
        """Make everything on the file system of `path` durable; False when this cannot be done, or not reliably."""
        syncfs = find_syncfs()
        if syncfs is None:
            return False
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        fd = self._open_files.attempt(lambda: os.open(path, flags))
        try:
            if syncfs(fd) == 0:
                return True
            code = ctypes.get_errno()
        finally:
            os.close(fd)
        if code == errno.ENOSYS:
            return False
        raise OSError(code, os.strerror(code), path)

    def free_bytes(self, path: str) -> int:
        """Return the room left on the file system of `path`."""
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self, path: str) -> int:
        """Return the size of the file system of `path`."""
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize

    def lock(self, path: str) -> RealLock:
        """Take an exclusive lock on a file, or raise BlockingIOError when another process holds it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise BlockingIOError(f"{path} is locked by another process") from None
        return RealLock(fd)
