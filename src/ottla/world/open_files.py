"""The descriptors of files: no more than a number, however many files are in use.

O1  While `files_max` or more are open, the one opened longest ago is closed before the next is opened, and opens again
    when it is used. One that has grown since is spared, and one that is pinned stays: a thread is at work on it.
O2  A pin for which no other file can be closed is refused, as if the process had no descriptor left: a thread that
    syncs very many files takes some of them at a time.
O3  Where descriptors run short all the same, files make room, and the attempt is repeated.
O4  All of this happens in the thread that made it, on the loop. Files that others open are few and soon closed.

To use a file that is open costs nothing here: there is no order of use, only one of opening.
"""

import errno
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

# What an attempt says for which there was no descriptor: nothing was done, and nothing is lost by trying again.
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_SPARED_MAX = 16  # that have grown, before one of them goes all the same
_ROOM = 8  # files that are closed where descriptors run short

T = TypeVar("T")


class Resting(Protocol):
    """A file that can give its descriptor back until its next use."""

    size: int

    @property
    def pins(self) -> int:
        """How many threads are at work on it."""
        ...

    def close(self) -> None:
        """Give the descriptor back."""
        ...


class OpenFiles:
    """Every file that the loop has open. `files_max` is asked anew each time."""

    __slots__ = ("_files", "_held", "_thread", "closed", "files_max", "pinned")

    def __init__(self) -> None:
        self.files_max: Callable[[], int] = lambda: sys.maxsize
        self.closed = 0  # files that had to make room
        self._thread = threading.get_ident()
        self._files: dict[Resting, int] = {}  # by what size each had when it was opened, or spared
        self._held = 0  # directories
        self.pinned = 0  # files

    def __len__(self) -> int:
        return len(self._files) + self._held

    def limit(self, files_max: Callable[[], int]) -> Callable[[], None]:
        """Keep no more files open than that, on this thread; return what is to be called when it has become less."""
        self.files_max = files_max
        self._thread = threading.get_ident()
        return self._fit

    def open(self, file: Resting, path: str, flags: int, *, pins: bool) -> int:
        """Open a file and return its descriptor."""
        if threading.get_ident() != self._thread:
            return os.open(path, flags, 0o644)
        self._admit(pins=pins)
        fd = self.attempt(lambda: os.open(path, flags, 0o644))
        self._files[file] = file.size
        return fd

    def forget(self, file: Resting) -> None:
        """A file is closed."""
        self._files.pop(file, None)

    def hold(self, path: str) -> tuple[int, bool]:
        """Open a directory for a thread, and say whether `let_go` is to be told when it is closed."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if threading.get_ident() != self._thread:
            return os.open(path, flags), False
        self._admit(pins=True)
        fd = self.attempt(lambda: os.open(path, flags))
        self._held += 1
        return fd, True

    def let_go(self) -> None:
        """A directory that was held is closed."""
        self._held -= 1

    def _fit(self) -> None:
        while len(self) > self.files_max() and self._close_one():
            pass

    def attempt(self, work: Callable[[], T]) -> T:
        """Do something that needs a descriptor or two; once more, with fewer files open, where there was none (O3)."""
        try:
            return work()
        except OSError as error:
            if error.errno not in NO_DESCRIPTORS or threading.get_ident() != self._thread:
                raise
            if not sum(self._close_one() for _ in range(_ROOM)):
                raise
        return work()

    def _admit(self, *, pins: bool) -> None:
        while len(self) >= self.files_max():
            if not self._close_one():
                if pins:
                    raise OSError(errno.EMFILE, "every file that may be open is being synced")  # O2
                return

    def _close_one(self) -> bool:
        files = self._files
        if self.pinned >= len(files):
            return False
        for _ in range(min(_SPARED_MAX, len(files))):
            file, size = next(iter(files.items()))
            if not file.pins and file.size == size:
                file.close()
                self.closed += 1
                return True
            del files[file]
            files[file] = file.size
        for file in files:
            if not file.pins:
                file.close()
                self.closed += 1
                return True
        return False
