"""A control beside the honest client: what the machine, and not the broker, was late by.

A thread does the least of what a broker does, again and again: it wakes up when it has asked to, writes a few bytes and
syncs them. While it is late itself, other programs have the processor or the disk, and who waits for a broker then
cannot blame it.
"""

import os
import threading
import time
from bisect import bisect_left
from pathlib import Path

PERIOD_S = 0.02
LATE_S = 0.005


class Control:
    """Remembers when the machine was late; as a context it runs."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / f"control-{os.getpid()}"
        self._late: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Control":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        file = os.open(self._path, os.O_CREAT | os.O_RDWR)
        due = time.monotonic()
        while not self._stop.wait(max(due - time.monotonic(), 0)):
            os.pwrite(file, b"x" * 100, 0)
            os.fdatasync(file)
            now = time.monotonic()
            if now - due > LATE_S:
                self._late.append((due, now))
            due = now + PERIOD_S
        os.close(file)
        self._path.unlink()

    @property
    def late_s(self) -> float:
        """For how long the machine was late, in all."""
        return sum(end - begin for begin, end in self._late)

    def late_within(self, began: float, ended: float) -> float:
        """For how long it was late in a span of time."""
        at = bisect_left(self._late, (began, began))
        late = 0.0
        for number in range(max(at - 1, 0), len(self._late)):
            begin, end = self._late[number]
            if begin >= ended:
                break
            late += max(min(end, ended) - max(begin, began), 0.0)
        return late
