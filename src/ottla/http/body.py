"""The body of a request, on its way in: counted, and never waited for without end.

B1  A body of more bytes than the limit is refused with 413: at once where its length is declared, else when it is
    reached.
B2  What all requests of a service hold together stays within one budget; a body that does not fit is refused with 503.
B3  A body that stands still is refused with 408.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ottla.http.error import HttpError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class BodyBudget:
    """How many bytes of bodies a service holds, and how many it may."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held = 0


class BodyReceiver:
    """The `receive` of one request, with limits; `release` gives back what it held."""

    def __init__(
        self, receive: Receive, budget: BodyBudget, *, bytes_max: int | None, idle_s: float, is_stream: bool
    ) -> None:
        self._receive = receive
        self._budget = budget
        self._bytes_max = bytes_max
        self._idle_s = idle_s
        self._is_stream = is_stream
        self.bytes = 0
        self._held = 0

    async def __call__(self) -> Message:
        """Return the next piece."""
        try:
            async with asyncio.timeout(self._idle_s):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, f"nothing of the body came for {self._idle_s:g} s", headers=_CLOSE) from None
        size = len(message.get("body", b""))
        self.bytes += size
        if self._bytes_max is not None and self.bytes > self._bytes_max:
            raise too_large(self._bytes_max)
        if not self._is_stream:
            if self._budget.held + size > self._budget.bytes_max:
                raise HttpError(
                    503, "too many bodies are being read; try again", headers={**_CLOSE, "retry-after": "1"}
                )
            self._budget.held += size
            self._held += size
        return message

    def release(self) -> None:
        """Give back what the request held."""
        self._budget.held -= self._held
        self._held = 0


def too_large(bytes_max: int) -> HttpError:
    """Return the refusal of a body over the limit; what is left of the body is not read."""
    return HttpError(413, f"the body has more than {bytes_max} bytes", headers=_CLOSE)


_CLOSE = {"connection": "close"}
