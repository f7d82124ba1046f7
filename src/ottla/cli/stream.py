"""Standard input and output, and files, without holding up the loop.

S1  A reader that waits for a key, or a writer whose pipe is full, waits on a thread of its own, which ends with the
    process: nobody has to press a key for a command to end.
S2  Nothing is buffered here, so nothing is left over when a command is interrupted.
"""

import asyncio
import select
import sys
from collections.abc import AsyncGenerator, Callable
from io import FileIO
from typing import Any, Self, TypeVar

from ottla.world.worker import ThreadWorker

T = TypeVar("T")
CHUNK_BYTES = 1 << 18
STDIN = "-"
# How long an interrupt waits for what is being written.
GRACE_SECONDS = 0.5


class Elsewhere:
    """A thread for blocking calls, one after the other. Nobody waits for one that does not return."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadWorker(self._loop, name)
        self._busy = 0

    async def call(self, work: Callable[[], T]) -> T:
        """Return what a blocking call returns, or raise what it raises."""
        future: asyncio.Future[T] = self._loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            self._busy -= 1
            if future.done():  # nobody waits any more
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._busy += 1
        self._worker.run(work, done)
        return await future

    @property
    def is_idle(self) -> bool:
        """Whether every call has returned."""
        return not self._busy

    def close(self) -> None:
        """End the thread, unless it is held up; then it ends with the process."""
        if self.is_idle:
            self._worker.stop()


async def read_chunks(path: str = STDIN) -> AsyncGenerator[bytes, None]:
    """Yield what a file holds, or stdin, as it comes in; OSError says why it cannot be read."""
    thread = Elsewhere("ottla-input")
    try:
        with _open(path) as file:
            while data := await thread.call(lambda: file.read(CHUNK_BYTES)):
                yield data
    finally:
        thread.close()


def _open(path: str) -> FileIO:
    # Without a buffer there is no lock that a waiting thread could hold when the interpreter ends.
    return FileIO(sys.stdin.fileno(), "rb", closefd=False) if path == STDIN else FileIO(path, "rb")


class Outlet:
    """Standard output for bytes; use it in `with`."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._file = FileIO(sys.stdout.fileno(), "wb", closefd=False)
        self._thread = Elsewhere("ottla-output")

        self._watch = select.poll()
        self._watch.register(self._file.fileno(), select.POLLERR)

    def check(self) -> None:
        """Raise BrokenPipeError when nobody reads any more, which a write would find out only when there is one."""
        if any(event & select.POLLERR for _, event in self._watch.poll(0)):
            raise BrokenPipeError

    async def write(self, data: bytes) -> None:
        """Return once all of it is written; BrokenPipeError when nobody reads any more.

        Whoever is cancelled meanwhile finds out from `is_idle` whether it was written all the same.
        """
        writing = asyncio.ensure_future(self._thread.call(lambda: self._write(memoryview(data))))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing], timeout=GRACE_SECONDS)
            writing.cancel()
            raise

    @property
    def is_idle(self) -> bool:
        """Whether all was written that was to be."""
        return self._thread.is_idle

    def _write(self, left: memoryview) -> None:
        while left:
            left = left[self._file.write(left) :]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.close()
