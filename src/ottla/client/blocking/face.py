"""A client of asyncio, seen without it: the same names, arguments, results and errors, and calls that wait.

B1  There is one implementation. A face holds a client that lives on the loop of `LoopThread`, and every call is made
    there: what is a coroutine is waited for, and what is not is called.
B2  A face may be used from several threads, as far as what it calls allows that; nothing but the loop's thread ever
    touches the client.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import uvloop

from ottla.client.errors import Closed
from ottla.world.loop_thread import LoopThread, Waiting

R = TypeVar("R")


class Face:
    """What every blocking client has. A subclass names the class it is the face of, and gets its public methods."""

    _kind: ClassVar[type]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._waiting: list[Waiting] = []
        self._thread = LoopThread.borrow(uvloop.new_event_loop)
        self._is_borrowed = True
        try:
            self._client = self._thread.run(_call(self._kind, *arguments, **keywords))
        except BaseException:
            self._give_back()
            raise

    def __init_subclass__(cls, kind: type) -> None:
        cls._kind = kind
        cls.__doc__ = (
            cls.__doc__ or ""
        ) + f"\n\n    Everything is as with `{kind.__module__}.{kind.__name__}`."
        for name, found in inspect.getmembers_static(kind):
            if not name.startswith("_") and not hasattr(cls, name):
                setattr(cls, name, _seen(name, found))

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        if not self._is_borrowed:
            work.close()
            raise Closed("the client is closed", hint="make another")
        waiting = Waiting()
        self._waiting.append(waiting)
        try:
            return self._thread.run(work, waiting)
        finally:
            self._waiting.remove(waiting)

    def _give_back(self) -> None:
        if self._is_borrowed:
            self._is_borrowed = False
            self._thread.give_back()

    def open(self) -> Self:
        """Reach a broker, which `with` does too."""
        self._run(self._client.open())
        return self

    def close(self, *arguments: Any, **keywords: Any) -> None:
        """Close the client, and wait until it is."""
        if self._is_borrowed:
            try:
                self._run(self._client.close(*arguments, **keywords))
            finally:
                self._give_back()

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


class Noun:
    """A part of a client, such as the topics of an admin, seen without asyncio."""

    def __init__(self, face: Face, part: object) -> None:
        self._face = face
        self._part = part
        self.__doc__ = type(part).__doc__

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if name.startswith("_") or not callable(found):
            return found

        @functools.wraps(found)
        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._face._run(_call(found, *arguments, **keywords))

        return call

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._part) if not name.startswith("_")]


async def _call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call on the loop, and wait if there is something to wait for."""
    result = function(*arguments, **keywords)
    return await result if asyncio.iscoroutine(result) else result


def _seen(name: str, found: Any) -> Any:
    if isinstance(found, property):

        def get(self: Face) -> Any:
            return self._run(_call(getattr, self._client, name))

        return property(get, doc=found.__doc__)

    @functools.wraps(found)
    def call(self: Face, *arguments: Any, **keywords: Any) -> Any:
        return self._run(_call(getattr(self._client, name), *arguments, **keywords))

    return call
