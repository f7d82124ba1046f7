"""The answer to one request on its way out: counted, completed with the headers that every answer has, and bounded.

X1  The head leaves once. What fails after that cannot be told to the client any more: the connection is cut.
X2  A client that takes nothing of its answer for the idle time is hung up on.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ottla.http.request_id import HEADER

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


class BodyNotWanted(Exception):
    """The answer is to HEAD, and its head has left."""


class Exchange:
    """The `send` of one request."""

    def __init__(self, send: Send, *, method: str, request_id: str, idle_s: float) -> None:
        self._send = send
        self._method = method
        self._request_id = request_id
        self._idle_s = idle_s
        self.status = 0
        self.bytes = 0
        self.closes = False

    @property
    def has_begun(self) -> bool:
        """Whether the head has left."""
        return self.status != 0

    async def __call__(self, message: Message) -> None:
        """Pass on a piece of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._headers(message)]
        elif message["type"] == "http.response.body":
            if self._method == "HEAD":
                await self._pass_on({"type": "http.response.body", "body": b"", "more_body": False})
                raise BodyNotWanted
            self.bytes += len(message.get("body", b""))
        await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        async with asyncio.timeout(self._idle_s):
            await self._send(message)

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        given = {name.lower() for name, _ in message.get("headers", ())}
        headers = [
            (HEADER.encode(), self._request_id.encode()),
            (b"server", b"ottla"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if self.closes:
            headers.append((b"connection", b"close"))
        return [(name, value) for name, value in headers if name not in given]
