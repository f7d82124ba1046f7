"""A part of a blocking client, such as the topics of an admin client."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ottla.client.blocking.client import BlockingClient

P = TypeVar("P")
R = TypeVar("R")


class BlockingPart(Generic[P]):
    """A part of a blocking client, with the methods of the same part of the client of asyncio."""

    def __init__(self, client: BlockingClient[Any], part: P) -> None:
        self._client = client
        self._part = part

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop, and return its result."""
        return self._client._run(work)

    def _call(self, function: Callable[..., R], *arguments: Any, **keywords: Any) -> R:
        """Call a plain function on the loop, and return its result."""
        return self._client._call(function, *arguments, **keywords)
