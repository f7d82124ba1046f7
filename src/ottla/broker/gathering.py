"""An answer made of parts that come from several coordinators, in any order."""

from collections.abc import Callable
from typing import Any

from ottla.broker.api import Pending
from ottla.wire.message import Message


class Gathering:
    """Parts of an answer, until all `left` of them are there; `finish` makes the answer of them."""

    __slots__ = ("_finish", "_found", "_left", "pending")

    def __init__(self, left: int, finish: Callable[[list[Any]], Message]) -> None:
        self.pending = Pending()
        self._found: list[Any] = []
        self._left = left + 1
        self._finish = finish

    def add(self, part: list[Any]) -> None:
        """Take one part in."""
        self._found += part
        self.check()

    def check(self) -> None:
        """One part less to wait for; the last call is that of the one who asked."""
        self._left -= 1
        if self._left == 0:
            self.pending.resolve(self._finish(self._found))
