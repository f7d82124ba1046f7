"""Time: wall-clock milliseconds for what users see, monotonic seconds for what is measured."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where the present moment comes from."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch; it may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...


class RealClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    # The function itself, not a method around it: requests are timed with it.
    monotonic = staticmethod(time.monotonic)

    # Likewise: producers stamp every record with it.
    time_ns = staticmethod(time.time_ns)
