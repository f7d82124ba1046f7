"""A directory that is held open, so that its names can be synced though descriptors run out meanwhile."""

import os
from typing import Protocol


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

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync(self) -> None:
        """Make renames, removals and new names in it durable."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
