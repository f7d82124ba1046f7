"""At most so many things a second, evenly.

A pause is worth its while from a few milliseconds on, so what is due by then is let through at once; nothing is made
up for that was missed while the cluster was slow, beyond a tenth of a second.
"""

import asyncio

from ottla.world.clock import Clock, RealClock

_SLACK_SECONDS = 0.002
_DEBT_SECONDS_MAX = 0.1


class Pace:
    """Holds back whoever goes too fast."""

    def __init__(self, rate: float, clock: Clock | None = None) -> None:
        self._interval = 1 / rate
        self._clock = RealClock() if clock is None else clock
        self._due = self._clock.monotonic()

    def take(self) -> float:
        """Count one more, and return how long to wait before it, in seconds."""
        now = self._clock.monotonic()
        self._due = max(self._due, now - _DEBT_SECONDS_MAX)
        wait = self._due - now
        self._due += self._interval
        return wait if wait > _SLACK_SECONDS else 0.0

    async def wait(self) -> None:
        """Count one more, when its time has come."""
        seconds = self.take()
        if seconds:
            await asyncio.sleep(seconds)
