"""Asking until the answer is right, since a broker shows a change after the controller has made it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(
    ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], seconds_max: float = 15
) -> T:
    """Return the first answer for which the condition holds; TimeoutError when there is none in time."""
    async with asyncio.timeout(seconds_max):
        while True:
            found = await ask()
            if condition(found):
                return found
            await asyncio.sleep(0.02)
