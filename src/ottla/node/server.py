"""Run a node until it is told to stop."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable
from typing import Any

import uvloop

from ottla.node.node import Node
from ottla.node.settings import Settings
from ottla.node.storage import StartError
from ottla.node.supervision import SupervisedProcess
from ottla.node.world import real_world
from ottla.world.network import raise_descriptor_limit

FAILED = 1
_GARBAGE_THRESHOLDS = (20_000, 20, 50)


Beside = Callable[[Node], SupervisedProcess | None]


def run(settings: Settings, ready: Callable[[Node], None] | None = None, beside: Beside | None = None) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code. StartError says why a node cannot start.

    `beside` gives a process that runs as long as the node serves: it is started after it and stopped before it.
    """
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings, ready, beside))


async def serve(
    settings: Settings, ready: Callable[[Node], None] | None = None, beside: Beside | None = None
) -> int:
    """Start a node on the running loop, wait for the end, and stop it."""
    loop = asyncio.get_running_loop()
    world = real_world(loop)
    end: asyncio.Future[str | None] = loop.create_future()

    def stop(reason: str | None) -> None:
        if not end.done():
            end.set_result(reason)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, None)
    node = Node(settings, world, stop)
    companion: SupervisedProcess | None = None
    try:
        start = asyncio.ensure_future(node.start())
        first: set[asyncio.Future[Any]] = {start, end}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            await start
            # What is alive now lives for good: the collector need not look at it again.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_GARBAGE_THRESHOLDS)
            if ready is not None:
                ready(node)
            companion = beside(node) if beside is not None else None
            if companion is not None:
                companion.start()
        else:
            start.cancel()
            with contextlib.suppress(asyncio.CancelledError, StartError):
                await start
        reason = await end
    finally:
        if companion is not None:
            await companion.stop()
        await node.stop()
    if reason is not None:
        world.report(f"stopping: {reason}")
        return FAILED
    return 0


__all__ = ["StartError", "run", "serve"]
