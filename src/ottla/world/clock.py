"""Time: wall-clock milliseconds for what users see, monotonic seconds for what is measured."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Where the present moment comes from."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch; it may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...


def steady_ms(clock: Clock) -> Callable[[], int]:
    """Return what tells milliseconds that begin as those of the wall clock and then only grow.

    This is the time for whatever waits or expires: a wall clock that is set back by a year would put it off for a year.
    """
    ahead_ms = clock.now_ms() - round(clock.monotonic() * 1000)
    return lambda: ahead_ms + round(clock.monotonic() * 1000)


class RealClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    # The function itself, not a method around it: requests are timed with it.
    monotonic = staticmethod(time.monotonic)

    # Likewise: producers stamp every record with it.
    time_ns = staticmethod(time.time_ns)
