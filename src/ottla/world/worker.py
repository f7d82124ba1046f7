"""Threads: work that would hold up the loop (fsync, compaction) is done here and comes back as an event."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

Done = Callable[[Any, BaseException | None], None]


class Worker(Protocol):
    """Something that runs blocking work elsewhere."""

    def run(self, work: Callable[[], Any], done: Done) -> None:
        """Run `work` off the loop, then call `done(result, error)` on the loop."""
        ...

    def stop(self) -> None:
        """Finish what was given and end."""
        ...


class InlineWorker:
    """A worker that works at once, for tests and for tools without a loop."""

    def run(self, work: Callable[[], Any], done: Done) -> None:
        """Run `work` here and now."""
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  # the caller judges it
            done(None, error)
        else:
            done(result, None)

    def stop(self) -> None:
        """Have nothing to end."""


class ThreadWorker:
    """One thread that serves one loop; work is done in the order it was given."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._queue: SimpleQueue[tuple[Callable[[], Any], Done] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Any], done: Done) -> None:
        """Queue `work` for the thread."""
        self._queue.put((work, done))

    def stop(self) -> None:
        """Let the thread finish what it has, and wait for it."""
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            work, done = job
            try:
                result, error = work(), None
            except BaseException as raised:  # noqa: BLE001  # the caller judges it
                result, error = None, raised
            try:
                self._loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:  # the loop is closed: nobody waits for the answer any more
                return
