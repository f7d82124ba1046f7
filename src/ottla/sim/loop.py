"""Virtual time for real asyncio code: one timeline, and on it an event loop for each simulated process.

V1  Nobody sleeps: when no callback is ready, the moment of the next timer is now.
V2  What is ready runs in the order in which it became so, and timers of one moment in the order in which they were set:
    a run depends on its seed, and on nothing that differs from one interpreter to the next.
V3  A process that is stopped (SIGSTOP) runs nothing; what fell due meanwhile runs, in its order, once it goes on.
V4  A process that has died runs nothing any more, and nothing that its coroutines still do on being ended has effect.

    RUNNING --pause()--> STOPPED --go_on()--> RUNNING
       |                    |
       +------- die() ------+--> DEAD
"""

import asyncio
import contextvars
import heapq
import traceback
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ottla.sim.violation import Stuck, Violation

_WAITS_MAX = 100  # of a coroutine on its way out


class Death(BaseException):
    """What ends the coroutines of a process that dies."""


class Handle:
    """Something to be called, unless it is cancelled before."""

    __slots__ = ("arguments", "callback", "context", "moment", "process")

    def __init__(
        self,
        process: "Process",
        moment: float,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self.process = process
        self.moment = moment
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments
        self.context = context

    def cancel(self) -> None:
        """Let it not be called."""
        self.callback = None
        self.arguments = ()

    def cancelled(self) -> bool:
        """Whether it was called off, or called."""
        return self.callback is None

    def when(self) -> float:
        """The moment it is due."""
        return self.moment


class Timeline:
    """What is to happen, of all processes."""

    __slots__ = ("_count", "_ready", "_timers", "calls", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0
        self._count = 0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []

    def soon(self, handle: Handle) -> None:
        """Call in this moment, after all that is ready."""
        self._ready.append(handle)

    def at(self, handle: Handle) -> None:
        """Call at the moment of the handle."""
        self._count += 1
        heapq.heappush(self._timers, (handle.moment, self._count, handle))

    def run(self, until: Callable[[], bool], seconds_max: float, calls_max: int) -> None:
        """Let things happen until something is so; Stuck when it takes too long, or nothing is left to happen."""
        ready, timers, end = self._ready, self._timers, self.now + seconds_max
        current: Process | None = None
        try:
            while not until():
                if ready:
                    handle = ready.popleft()
                elif timers:
                    moment, _, handle = heapq.heappop(timers)
                    if handle.callback is None:
                        continue
                    if moment > self.now:
                        self.now = moment
                else:
                    raise Stuck("nothing is left to happen")
                process, callback = handle.process, handle.callback
                if callback is None or process.is_dead:
                    continue
                if process.is_paused:
                    process.parked.append(handle)
                    continue
                self.calls += 1
                if self.now > end:
                    raise Stuck(f"{seconds_max:g} s were not enough")
                if self.calls > calls_max:
                    raise Stuck(f"{calls_max} calls were not enough")
                if process is not current:
                    events._set_running_loop(process)  # type: ignore[arg-type]
                    current = process
                handle.callback = None
                try:
                    if handle.context is None:
                        callback(*handle.arguments)
                    else:
                        handle.context.run(callback, *handle.arguments)
                except Violation:
                    raise
                except Exception as error:  # noqa: BLE001  # it is the process's fault, and reported as such
                    process.faults.append("".join(traceback.format_exception(error)))
        finally:
            events._set_running_loop(None)


class Process:
    """One process, as the event loop that its code runs on: as much of one as anybody here uses."""

    def __init__(self, timeline: Timeline, name: str) -> None:
        self.timeline = timeline
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.parked: list[Handle] = []
        self.faults: list[str] = []  # exceptions that nobody caught
        self._tasks: dict[asyncio.Task[Any], None] = {}

    # Its life

    def pause(self) -> None:
        """Stop in its tracks."""
        self.is_paused = True

    def go_on(self) -> None:
        """Take up what fell due meanwhile."""
        self.is_paused = False
        parked, self.parked = self.parked, []
        for handle in parked:
            self.timeline.soon(handle)

    def die(self) -> None:
        """End at once. Coroutines are ended here, and not whenever the collector finds them."""
        self.is_dead = True
        before = events._get_running_loop()
        events._set_running_loop(self)  # type: ignore[arg-type]
        try:
            for task in tuple(self._tasks):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine: Any = task.get_coro()
                # One that waits on its way out is told again; one that is in the middle of its step cannot be told.
                with suppress(BaseException):
                    for _ in range(_WAITS_MAX):
                        coroutine.throw(Death())
        finally:
            events._set_running_loop(before)
        self._tasks.clear()
        self.parked.clear()

    # The loop, as far as anybody uses it

    def time(self) -> float:
        """The present moment."""
        return self.timeline.now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        """Call in this moment, after all that is ready."""
        handle = Handle(self, self.timeline.now, callback, args, context)
        if not self.is_dead:
            self.timeline.soon(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Call at a moment."""
        handle = Handle(self, when, callback, args, context)
        if not self.is_dead:
            self.timeline.at(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Call after a while."""
        return self.call_at(self.timeline.now + max(delay, 0.0), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future."""
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Begin a task; it is kept until it is done, whoever forgets it."""
        if self.is_dead:
            coro.close()
            over = self.create_future()
            over.cancel()
            return over
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)  # type: ignore[arg-type]
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what nobody caught."""
        if self.is_dead:
            return
        error = context.get("exception")
        lines = traceback.format_exception(error) if isinstance(error, BaseException) else []
        self.faults.append(f"{context.get('message')}\n{''.join(lines)}")

    def get_debug(self) -> bool:
        """Tell asyncio to spare its checks."""
        return False

    def is_running(self) -> bool:
        """Whether it can be used."""
        return not self.is_dead

    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.is_dead
