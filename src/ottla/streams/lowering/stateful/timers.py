"""When the callbacks of a processor are called.

A schedule is known by its number among those of the processor, its clock and its interval; when it is due next is
kept in a store, since the processor itself lives for a micro-batch.

    stream time   due at 0, so after the first record, and then at multiples of the interval
    wall clock    due an interval after it was first scheduled
"""

from collections.abc import Callable

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.stateful.store import Store

_NAME = b"timers"


class Schedule:
    """A callback, and when it is due."""

    def __init__(self, clock: str, interval: int, callback: Callable[[int], None], due: int) -> None:
        self.clock = clock
        self.interval = interval
        self.callback = callback
        self.due = due
        self.active = True

    def cancel(self) -> None:
        """Let it be called no more in this micro-batch, nor later unless it is scheduled again."""
        self.active = False


class Timers:
    """All schedules of a processor."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        self._now = now
        self._known: list[tuple[str, int, int]] = store.get(_NAME) or []
        self.schedules: list[Schedule] = []

    def add(self, clock: str, interval: int, callback: Callable[[int], None]) -> Schedule:
        """Schedule a callback."""
        number = len(self.schedules)
        due = 0 if clock == "stream" else self._now + interval
        if number < len(self._known) and self._known[number][:2] == (clock, interval):
            due = self._known[number][2]
        schedule = Schedule(clock, interval, callback, due)
        self.schedules.append(schedule)
        return schedule

    def ring(self, clock: str, time: int) -> None:
        """Call what is due: each once, however many intervals have passed."""
        for each in list(self.schedules):
            if each.clock == clock and each.active and each.due <= time:
                missed = (time - each.due) // each.interval
                each.due += (missed + 1) * each.interval
                each.callback(time)

    def next_on_wall(self) -> int | None:
        """Return when the clock on the wall must wake the processor."""
        return min(
            (each.due for each in self.schedules if each.clock == "wall" and each.active), default=None
        )

    def flush(self) -> None:
        """Remember when callbacks are due."""
        known = [(each.clock, each.interval, each.due) for each in self.schedules]
        if known != self._known:
            self._store.put(_NAME, known)


def checked_clock(clock: str, wall_clock: bool, name: str, place: str) -> str:
    """Return the name of a clock that a processor may use."""
    if clock not in ("stream", "wall"):
        raise FunctionFailed(name, place, f"there is no clock {clock!r}: it is 'stream' or 'wall'")
    if clock == "wall" and not wall_clock:
        raise FunctionFailed(name, place, "clock='wall' needs wall_clock = True in the processor's class")
    return clock
