"""Files and directories of a log directory that go after a while, in a thread.

A topic may have thousands of partitions, and a segment a gigabyte: to remove them takes seconds.
"""

from collections.abc import Callable

from ottla.world.disk import Disk
from ottla.world.worker import Worker


class Deletions:
    """What is to be removed from one log directory, and when. `warn` hears of what cannot be, and is tried again.

    `now_ms` is a time that only grows, not the wall clock's (`steady_ms`).
    """

    __slots__ = ("_disk", "_waiting", "_warn")

    def __init__(self, disk: Disk, warn: Callable[[str], None]) -> None:
        self._disk = disk
        self._warn = warn
        # The moment is None until `start` has told what time it is.
        self._waiting: list[tuple[list[str], int, int | None]] = []

    def add(self, paths: list[str], delay_ms: int) -> None:
        """Have these removed, `delay_ms` after the next `start`."""
        if paths:
            self._waiting.append((paths, delay_ms, None))

    def start(self, now_ms: int, worker: Worker) -> None:
        """Have the worker remove what has waited long enough."""
        due: list[str] = []
        waiting: list[tuple[list[str], int, int | None]] = []
        for paths, delay_ms, due_ms in self._waiting:
            moment = now_ms + delay_ms if due_ms is None else due_ms
            if moment > now_ms:
                waiting.append((paths, delay_ms, moment))
            else:
                due += paths
        self._waiting = waiting
        if due:
            worker.run(lambda: self._remove(due), lambda left, error: self._removed(due, left, error))

    def _remove(self, paths: list[str]) -> list[tuple[str, Exception]]:
        """Remove these, and return those that could not be, with why. This runs in the thread."""
        left: list[tuple[str, Exception]] = []
        for path in paths:
            try:
                if self._disk.is_dir(path):
                    self._disk.remove_tree(path)
                else:
                    self._disk.remove(path)
            except Exception as error:  # noqa: BLE001  # the others go all the same
                left.append((path, error))
        return left

    def _removed(
        self, paths: list[str], left: list[tuple[str, Exception]] | None, error: BaseException | None
    ) -> None:
        if left:
            paths, error = [path for path, _ in left], left[0][1]
        if error is not None:
            self.add(paths, 0)
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            self._warn(f"{paths[0]}{more} could not be removed, which is tried again: {error}")
