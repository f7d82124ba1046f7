"""Runs a coroutine on a loop of its own, and looks at what it leaves behind.

R1  Nothing that was started is still running when the coroutine has ended.
R2  No error is left that nobody looked at.
"""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop as uv

T = TypeVar("T")
SECONDS_MAX = 90.0


def run_alone(main: Coroutine[Any, Any, T], *, uvloop: bool = False, seconds_max: float = SECONDS_MAX) -> T:
    """Return what the coroutine returns."""
    complaints: list[str] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(
                f"{context.get('message')}: {context.get('exception')!r} {context.get('future')!r}"
            )
        )
        async with asyncio.timeout(seconds_max):
            result = await main
        # What was cancelled or closed last ends in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=uv.new_event_loop if uvloop else None) as runner:
        result = runner.run(watched())
        gc.collect()
        runner.run(asyncio.sleep(0))
    assert not complaints, complaints
    return result
