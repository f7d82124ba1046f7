"""Hedged requests: if a broker is slow, another one is asked too, and the first answer counts.

Only for requests that change nothing, since they may be served twice.
"""

import asyncio
from typing import TypeVar

from ottla.client.connections import ClientConnections
from ottla.client.errors import ClientError, NoBroker
from ottla.client.shared_task import start_shared
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

SILENCE_SECONDS = 0.5


async def ask_hedged(connections: ClientConnections, request: Message, response: type[M]) -> M:
    """Ask a broker, and one more each time that none has answered for a while. Return the first answer."""
    tried: set[int] = set()
    asked: set[asyncio.Task[M]] = set()
    last: ClientError = NoBroker("no broker is known")
    try:
        while True:
            node = connections.least_loaded(frozenset(tried))
            if node is not None:
                tried.add(node)
                asked.add(start_shared(connections.ask(node, request, response)))
            elif not asked:
                raise last
            done, asked = await asyncio.wait(
                asked,
                timeout=None if node is None else SILENCE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, ClientError) or not error.retriable:
                    raise error
                last = error
    finally:
        for task in asked:
            task.cancel()
