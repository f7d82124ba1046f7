"""An event that wakes a waiting poll: there are new records, a rebalance or an error.

It needs no task and no lock, only a future and a timer for each waiting caller. Mostly there is one.
"""

import asyncio


class WakeEvent:
    """An event with a timeout. If it is set while nobody waits, the next wait returns at once."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: dict[asyncio.Future[bool], None] = {}

    def set(self) -> None:
        """Wake all waiting callers, or else the next one."""
        if not self._waiters:
            self._is_set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def wait(self, timeout_s: float) -> bool:
        """Wait until the event is set or the timeout is over. Return whether it was set."""
        if self._is_set:
            self._is_set = False
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
