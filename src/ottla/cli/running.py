"""Runs a command that talks to a cluster, and shows each of its errors.

A command that moves many records runs on uvloop, others on the loop that is there without importing anything.
"""

import argparse
import asyncio
import logging
import re
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ottla.cli.connection import Connection
from ottla.cli.error import FAILED, TERMINATED, complain
from ottla.client import Admin
from ottla.client.errors import ClientError, Refused, SomeFailed

_UNKNOWN = re.compile(r"Unknown topic config name: ([\w.-]+)")


def run(main: Coroutine[Any, Any, int], *, fast: bool = False) -> int:
    """Run a coroutine to its end and return its exit code."""
    # What the client has to say goes to stderr like everything that is not a result.
    logging.basicConfig(level=logging.WARNING, format="warning: %(message)s")
    factory = None
    if fast:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_until_told_to_end(main))


async def _until_told_to_end(main: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine; SIGTERM ends it as an interrupt does, so that groups are left and offsets committed."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    task = loop.create_task(main)

    def end() -> None:
        told.set()
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        return await task
    except asyncio.CancelledError:
        if told.is_set():
            return TERMINATED
        raise


def run_admin(options: argparse.Namespace, command: Callable[[Admin], Awaitable[int]]) -> int:
    """Run a command on an admin client; an error about each of several things is a line each."""
    connection = Connection(options)

    async def main() -> int:
        async with Admin(connection.bootstrap, connection.settings("admin")) as admin:
            try:
                return await command(admin)
            except SomeFailed as some:
                return complain_of(some)
            except Refused as error:
                suggest(error)
                raise

    return run(main())


def suggest(error: ClientError) -> None:
    """Have an error that names a setting nobody knows say which one is near."""
    found = _UNKNOWN.search(error.args[0])
    if found is None or error.hint:
        return
    from ottla.metadata.settings.error import closest
    from ottla.metadata.settings.topic import TOPIC

    error.hint = closest(found[1], TOPIC) or "docs/reference/settings.md lists all there are"


def complain_of(some: SomeFailed) -> int:
    """Say what went wrong with each thing, and each hint once."""
    for error in some.errors.values():
        suggest(error)
    hints = dict.fromkeys(error.hint for error in some.errors.values() if error.hint)
    for error in some.errors.values():
        complain(error.args[0])
    for hint in hints:
        from ottla.cli.output.printer import remark

        remark(f"hint: {hint}")
    return FAILED
