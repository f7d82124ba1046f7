"""A directory that is held open, so that its names can be synced though descriptors run out meanwhile."""

import os
from typing import Protocol

from ottla.world.open_files import OpenFiles


class HeldDirectory(Protocol):
    """A directory that is open, so that its names can be synced though descriptors run out."""

    def sync(self) -> None:
        """Make renames, removals and new names in it durable."""
        ...

    def close(self) -> None:
        """Give the descriptor back."""
        ...


class RealDirectory:
    """A directory of the operating system, open."""

    __slots__ = ("_counted", "_fd")

    def __init__(self, path: str, open_files: OpenFiles | None = None) -> None:
        self._counted: OpenFiles | None = None
        if open_files is None:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        else:
            self._fd, is_counted = open_files.hold(path)
            self._counted = open_files if is_counted else None

    def sync(self) -> None:
        """Make renames, removals and new names in it durable."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._counted is not None:
            self._counted.let_go()
        os.close(self._fd)
