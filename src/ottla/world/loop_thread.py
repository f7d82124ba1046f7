"""An event loop in a thread of its own, for those who want to wait without asyncio.

H1  One thread serves every blocking client of a process; it is started with the first and ends with the last.
H2  Whoever waits may be interrupted (Ctrl-C): what it waited for is then cancelled, and ends before `run` returns.
H3  While somebody waits, the loop can have functions called in the waiting thread: a callback of the application runs
    where the application runs, and may itself wait.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, TypeVar

R = TypeVar("R")

_INTERRUPTED_SECONDS_MAX = 5.0


class LoopThread:
    """The loop, and who uses it."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _shared: ClassVar["LoopThread | None"] = None

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.loop = factory()
        self._users = 0
        self._thread = threading.Thread(target=self._serve, name="ottla-client", daemon=True)
        self._thread.start()

    @classmethod
    def borrow(cls, factory: Callable[[], asyncio.AbstractEventLoop]) -> "LoopThread":
        """Return the thread of this process; whoever borrows it gives it back."""
        with cls._lock:
            if cls._shared is None or not cls._shared._thread.is_alive():
                cls._shared = cls(factory)
            cls._shared._users += 1
            return cls._shared

    def give_back(self) -> None:
        """Say that one user is done; the last one ends the thread."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if LoopThread._shared is self:
                LoopThread._shared = None
        self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_here:
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; in a process that was forked it does not."""
        return self._thread.is_alive()

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the loop's own thread, where it must not wait."""
        return threading.current_thread() is self._thread

    def call(self, work: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, soon."""
        self.loop.call_soon_threadsafe(work, *arguments)

    def run(self, work: Coroutine[Any, Any, R], waiting: "Waiting | None" = None) -> R:
        """Run a coroutine on the loop, and wait for what it returns or raises."""
        if self.is_here:
            work.close()
            raise RuntimeError(
                "a blocking call was made from the client's own thread, where it would wait for itself"
            )
        waiting = waiting or Waiting()
        task: list[asyncio.Task[R]] = []

        def begin() -> None:
            task.append(self.loop.create_task(work))
            task[0].add_done_callback(waiting.end)

        self.loop.call_soon_threadsafe(begin)
        try:
            waiting.wait()
        except BaseException:
            # Not made yet, perhaps: only the loop may look.
            self.loop.call_soon_threadsafe(lambda: task[0].cancel())  # noqa: PLW0108
            waiting.wait_for_end(_INTERRUPTED_SECONDS_MAX)
            raise
        return task[0].result()


class Waiting:
    """A thread that waits for the loop, and does what the loop asks of it meanwhile."""

    __slots__ = ("_inbox",)

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def end(self, _: object) -> None:
        """Let the thread go."""
        self._inbox.put(None)

    def wait(self) -> None:
        """Wait for the end."""
        while (work := self._inbox.get()) is not None:
            work()

    def wait_for_end(self, seconds_max: float) -> None:
        """Wait for the end and do nothing else, but not for ever."""
        try:
            while self._inbox.get(timeout=seconds_max) is not None:
                pass
        except Empty:
            pass

    async def have(self, work: Callable[[], R]) -> R:
        """Have the waiting thread call a function, and return what it returns; called on the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def do() -> None:
            try:
                result, error = work(), None
            except Exception as raised:  # noqa: BLE001  # whoever asked for it judges it
                result, error = None, raised
            loop.call_soon_threadsafe(settle, result, error)

        self._inbox.put(do)
        return await future


class Gate:
    """Open or shut, from any thread; whoever comes waits while it is shut."""

    __slots__ = ("_event", "is_open")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._event.set()
        self.is_open = True

    def shut(self) -> None:
        """Let nobody through."""
        self.is_open = False
        self._event.clear()

    def open(self) -> None:
        """Let everybody through."""
        self.is_open = True
        self._event.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is open; whether it is."""
        return self._event.wait(timeout_s)
