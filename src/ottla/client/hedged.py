"""A question that any broker can answer: one that hangs holds up nobody, for another is asked beside it.

For questions alone, which may be asked twice.
"""

import asyncio
from typing import TypeVar

from ottla.client.errors import ClientError, NoBroker
from ottla.client.joint import begin
from ottla.client.links import Links
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

SILENCE_SECONDS = 0.5


async def hedged(links: Links, request: Message, response: type[M]) -> M:
    """Ask a broker, and one more whenever none has answered for a while; the first answer counts."""
    tried: set[int] = set()
    asked: set[asyncio.Task[M]] = set()
    last: ClientError = NoBroker("no broker is known")
    try:
        while True:
            node = links.least_loaded(frozenset(tried))
            if node is not None:
                tried.add(node)
                asked.add(begin(links.ask(node, request, response)))
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
