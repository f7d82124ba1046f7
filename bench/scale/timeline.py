"""A timeline on which work takes time: what a callback computes keeps its process busy for as long, and no other.

1  Every simulated machine has a core of its own, as fast as the one that the benchmark runs on. The simulator itself
   lets callbacks take no time at all, which would hide what this benchmark is about.
2  What a callback causes, a message or a timer, it causes at its end.
3  Processes that stand in for others, and the network, are not charged.

How long callbacks take is measured, so two runs differ a little: this is a benchmark and no proof.
"""

import heapq
import time
import traceback
from asyncio import events
from collections.abc import Callable
from dataclasses import dataclass

from ottla.sim.loop import Handle, Process, Timeline
from ottla.sim.violation import Stuck, Violation


@dataclass
class Spent:
    """What a process has computed: seconds of CPU in all, and in the one callback that took longest."""

    seconds: float = 0.0
    longest_s: float = 0.0
    longest: str = ""


class MeasuredTimeline(Timeline):
    """All processes; those in `spent` are charged for what they compute."""

    __slots__ = ("_caused", "_free_at", "spent")

    def __init__(self) -> None:
        super().__init__()
        self.spent: dict[str, Spent] = {}
        self._free_at: dict[str, float] = {}
        self._caused: list[Handle] | None = None

    def charge(self, process: Process) -> Spent:
        """Measure a process from now on."""
        return self.spent.setdefault(process.name, Spent())

    def free_at(self, process: Process) -> float:
        """When a process is done with what it has computed last."""
        return self._free_at.get(process.name, 0.0)

    def soon(self, handle: Handle) -> None:
        """Call in this moment, or at the end of the callback at hand."""
        if self._caused is None:
            super().soon(handle)
        else:
            self._caused.append(handle)

    def at(self, handle: Handle) -> None:
        """Call at the moment of the handle, or later by what the callback at hand takes."""
        if self._caused is None:
            super().at(handle)
        else:
            self._caused.append(handle)

    def run(self, until: Callable[[], bool], seconds_max: float, calls_max: int) -> None:
        """Let things happen until something is so."""
        ready, timers, end = self._ready, self._timers, self.now + seconds_max
        calls_max += self.calls
        current: Process | None = None
        try:
            while not until():
                if ready:
                    handle = ready.popleft()
                elif timers:
                    moment, _, handle = heapq.heappop(timers)
                    if handle.callback is None:
                        continue
                    self.now = max(self.now, moment)
                else:
                    raise Stuck("nothing is left to happen")
                process = handle.process
                if handle.callback is None or process.is_dead:
                    continue
                spent = self.spent.get(process.name)
                if spent is not None:
                    free_at = self._free_at.get(process.name, 0.0)
                    if free_at > self.now:
                        handle.moment = free_at
                        super().at(handle)
                        continue
                self.calls += 1
                if self.now > end or self.calls > calls_max:
                    raise Stuck(f"{seconds_max:g} s or {calls_max} calls were not enough")
                if process is not current:
                    events._set_running_loop(process)  # type: ignore[arg-type]
                    current = process
                if spent is None:
                    _call(handle)
                else:
                    self._call_charged(handle, spent)
        finally:
            events._set_running_loop(None)

    def _call_charged(self, handle: Handle, spent: Spent) -> None:
        callback = handle.callback
        caused = self._caused = []
        began = time.thread_time()
        try:
            _call(handle)
        finally:
            took = time.thread_time() - began
            self._caused = None
        spent.seconds += took
        if took > spent.longest_s:
            spent.longest_s, spent.longest = took, getattr(callback, "__qualname__", repr(callback))
        self._free_at[handle.process.name] = self.now + took
        for each in caused:
            each.moment = max(each.moment, self.now) + took
            super().at(each)


def _call(handle: Handle) -> None:
    callback, arguments = handle.callback, handle.arguments
    assert callback is not None
    handle.callback = None
    try:
        if handle.context is None:
            callback(*arguments)
        else:
            handle.context.run(callback, *arguments)
    except Violation:
        raise
    except Exception as error:  # noqa: BLE001  # it is the process's fault, and reported as such
        handle.process.faults.append("".join(traceback.format_exception(error)))
