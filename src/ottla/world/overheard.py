"""What a child process says on its standard error: passed on, all but what nobody needs to hear, and its end kept.

O1  Whatever is not muted reaches our own standard error, whole lines in their order, as if the child had written it.
O2  The last lines are kept, so that whoever finds the child dead can say what it died of.
O3  Nothing is passed on before `release`: who fails to start is spoken for by who started it.
O4  The child is never held up for long: it is read until it closes its end, whatever becomes of our own stream.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_LINES_KEPT = 200
_STDERR = 2


class Overheard:
    """A thread that listens to one child, or to a family that shares a stream."""

    def __init__(self, muted: Callable[[str], bool | None], into: int = _STDERR) -> None:
        """`muted` says of each line whether it is dropped; None where that is as with the next one."""
        self._muted = muted
        self._into = into
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)
        self._held: list[bytes] = []
        self._is_released = False
        self._lock = threading.Lock()
        self._ours, self._childs = os.pipe()
        self._thread = threading.Thread(target=self._listen, name="ottla-overheard", daemon=True)
        self._thread.start()

    @contextmanager
    def mouth(self) -> Iterator[int]:
        """Give the descriptor to start the child with; once it runs, it is the child's alone."""
        try:
            yield self._childs
        finally:
            os.close(self._childs)

    def release(self) -> None:
        """Pass on what was said so far, and from now on."""
        with self._lock:
            self._is_released = True
            for line in self._held:
                self._pass_on(line)
            self._held.clear()

    def last_words(self, seconds_max: float = 2.0) -> list[str]:
        """Return the last lines; a child that is about to end is given a moment to say them."""
        self._thread.join(seconds_max)
        return [line for line in self._last if not self._muted(line)]

    def _listen(self) -> None:
        with open(self._ours, "rb") as stream:
            some = b""
            for line in iter(stream.readline, b""):
                text = line.decode("utf-8", "replace").rstrip("\n")
                self._last.append(text)
                some += line
                muted = self._muted(text)
                if muted is None:
                    continue
                if not muted:
                    self._hear(some)
                some = b""
            if some:
                self._hear(some)

    def _hear(self, lines: bytes) -> None:
        with self._lock:
            if self._is_released:
                self._pass_on(lines)
            else:
                self._held.append(lines)

    def _pass_on(self, line: bytes) -> None:
        with suppress(OSError):  # nobody reads us any more
            os.write(self._into, line)
