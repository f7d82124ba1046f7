"""A task that several callers wait for.

J1  Cancelling one waiting caller does not cancel the task.
J2  If the task is cancelled, the waiting callers get an error and no cancellation, because they were not cancelled.
J3  An error of the task is not logged if no caller waits any more.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ottla.client.errors import ClientError

T = TypeVar("T")


def start_shared(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task that several may `wait_shared`."""
    task = asyncio.create_task(work)
    task.add_done_callback(_retrieve_exception)
    return task


async def wait_shared(task: "asyncio.Task[T]", ended: Callable[[], ClientError]) -> T:
    """Return its result. Raises its error, or `ended()` if it was cancelled."""
    await asyncio.wait({task})
    if task.cancelled():
        raise ended()
    return task.result()


def _retrieve_exception(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
