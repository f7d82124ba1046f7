"""Tasks that nobody waits for: what one of them fails with is not to be lost, or a poll would wait for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def start(work: Coroutine[Any, Any, None], failed: Callable[[Exception], object]) -> "asyncio.Task[None]":
    """Start a task; `failed` hears of an error that it did not deal with, which is a mistake of ours."""

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, Exception):
                failed(error)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    return task
