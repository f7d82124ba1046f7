"""A task that several wait for.

J1  Whoever gives up waiting does not end it for the others.
J2  When it is ended from outside, those who wait get an error, not a cancellation: it is not they who were cancelled.
J3  An error of its that nobody waits for any more is nobody's business.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ottla.client.errors import ClientError

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task that several may `join`."""
    task = asyncio.create_task(work)
    task.add_done_callback(_look)
    return task


async def join(task: "asyncio.Task[T]", ended: Callable[[], ClientError]) -> T:
    """Wait for its result; raise its error, or `ended()` when it was cancelled."""
    await asyncio.wait({task})
    if task.cancelled():
        raise ended()
    return task.result()


def _look(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
