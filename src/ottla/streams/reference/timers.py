"""When the callbacks of a processor are called.

    stream time   due at 0, so after the first record, and then at multiples of the interval
    wall clock    due an interval after it was first scheduled

What is due is called once, however many intervals have passed: the earliest first, of one time as they were scheduled.

A processor is made anew for each micro-batch, and schedules again in `init` what it scheduled before: the nth schedule
of `init` is the nth one of before, with what it is due at, and cancelled if it was. One that was scheduled later stays,
and calls the method of that name of whatever processor there is.
"""

from collections.abc import Callable
from typing import Any

Callback = Callable[[int], None]


class Schedule:
    """A callback, and when it is due."""

    def __init__(self, clock: str, interval_ms: int, callback: Callback, due: int) -> None:
        self.clock = clock
        self.interval_ms = interval_ms
        self.callback = callback
        self.due = due
        self.is_active = True

    def cancel(self) -> None:
        """Let it be called no more."""
        self.is_active = False


class Timers:
    """All schedules of a processor."""

    def __init__(self) -> None:
        self._of_init: list[Schedule] = []
        self._later: list[Schedule] = []
        self._known = 0
        self._is_in_init = False
        self._processor: Any = None

    def begin(self, processor: Any) -> None:
        """Begin the `init` of a processor."""
        self._known = 0
        self._is_in_init = True
        for each in self._later:
            name = getattr(each.callback, "__name__", "")
            if getattr(each.callback, "__self__", None) is self._processor and hasattr(processor, name):
                each.callback = getattr(processor, name)
        self._processor = processor

    def begun(self) -> None:
        """End the `init`; what it no longer schedules is no longer called."""
        self._is_in_init = False
        del self._of_init[self._known :]

    def add(self, clock: str, interval_ms: int, callback: Callback, now: int) -> Schedule:
        """Schedule a callback, at a time on the wall."""
        new = Schedule(clock, interval_ms, callback, 0 if clock == "stream" else now + interval_ms)
        if not self._is_in_init:
            self._later.append(new)
            return new
        at = self._known
        self._known += 1
        if at < len(self._of_init):
            before = self._of_init[at]
            if (before.clock, before.interval_ms) == (clock, interval_ms):
                before.callback = callback
                return before
            del self._of_init[at:]
        self._of_init.append(new)
        return new

    def due(self, clock: str, time: int) -> Schedule | None:
        """Return a callback that is to be called now, and let it be due at its next time."""
        waiting = [
            each
            for each in (*self._of_init, *self._later)
            if each.is_active and each.clock == clock and each.due <= time
        ]
        if not waiting:
            return None
        found = min(waiting, key=lambda each: each.due)
        found.due += ((time - found.due) // found.interval_ms + 1) * found.interval_ms
        return found
