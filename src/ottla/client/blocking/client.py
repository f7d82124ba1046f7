"""What all blocking clients have in common: a client of asyncio on the loop of another thread.

B1  There is one implementation. A blocking client holds a client that lives on the loop of `LoopThread`. Every call is
    made there, and the calling thread waits for its result.
B2  Several threads may use a blocking client, as far as the call itself allows it. Only the thread of the loop ever
    touches the client of asyncio.
"""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import uvloop

from ottla.client.errors import Closed
from ottla.world.loop_thread import LoopThread, Waiting

R = TypeVar("R")


class _AsyncClient(Protocol):
    """What a client of asyncio has."""

    def open(self) -> Coroutine[Any, Any, object]: ...

    def close(self) -> Coroutine[Any, Any, None]: ...


C = TypeVar("C", bound=_AsyncClient)


class BlockingClient(Generic[C]):
    """A client without asyncio. A subclass has the methods of the client that it holds."""

    def __init__(self, make: Callable[[], C]) -> None:
        """`make` returns the client of asyncio; it is called on the loop."""
        self._waiting: list[Waiting] = []
        self._thread = LoopThread.borrow(uvloop.new_event_loop)
        self._is_borrowed = True
        try:
            self._client = self._call(make)
        except BaseException:
            self._give_back()
            raise

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop, and return its result."""
        if not self._is_borrowed:
            work.close()
            raise Closed("the client is closed", hint="make another")
        waiting = Waiting()
        self._waiting.append(waiting)
        try:
            return self._thread.run(work, waiting)
        finally:
            self._waiting.remove(waiting)

    def _call(self, function: Callable[..., R], *arguments: Any, **keywords: Any) -> R:
        """Call a plain function on the loop, and return its result."""

        async def call() -> R:
            return function(*arguments, **keywords)

        return self._run(call())

    def _close(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine that closes the client, once."""
        if not self._is_borrowed:
            work.close()
            return
        try:
            self._run(work)
        finally:
            self._give_back()

    def _give_back(self) -> None:
        if self._is_borrowed:
            self._is_borrowed = False
            self._thread.give_back()

    def open(self) -> Self:
        """Connect to a broker; `with` does this too."""
        self._run(self._client.open())
        return self

    def close(self) -> None:
        """Close the client, and wait until it is closed."""
        self._close(self._client.close())

    def __enter__(self) -> Self:
        try:
            return self.open()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
