"""Something to wait for: rung by whoever has news for a poll, be it records, a rebalance or an error.

No task and no lock: a future and a timer for each who waits, which is one as a rule.
"""

import asyncio


class Bell:
    """Waits until it is rung. What was rung while nobody waited is heard by the next one who would."""

    __slots__ = ("_rung", "_waiters")

    def __init__(self) -> None:
        self._rung = False
        self._waiters: dict[asyncio.Future[bool], None] = {}

    def ring(self) -> None:
        """Wake all who wait, or else the next who would."""
        if not self._waiters:
            self._rung = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def heard(self, timeout_s: float) -> bool:
        """Return once it is rung, or the time is up; whether it was rung."""
        if self._rung:
            self._rung = False
            return True
        if timeout_s <= 0:
            return False
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout_s, _give_up, waiter)
        self._waiters[waiter] = None
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiters.pop(waiter, None)


def _give_up(waiter: "asyncio.Future[bool]") -> None:
    if not waiter.done():
        waiter.set_result(False)
