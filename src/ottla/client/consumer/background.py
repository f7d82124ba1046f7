"""Background tasks. Their errors are reported, because otherwise a poll could wait for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def start(work: Coroutine[Any, Any, None], failed: Callable[[Exception], object]) -> "asyncio.Task[None]":
    """Start a task. `failed` is called with an unexpected error of it."""

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, Exception):
                failed(error)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    return task
