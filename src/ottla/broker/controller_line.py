"""The way to the active controller, wherever it is: in this process, or at another node."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from ottla.wire.message import Message

M = TypeVar("M", bound=Message)


class ControllerLine(Protocol):
    """Asks the active controller. Nobody may be that at the moment: then the answer is an Exception, soon."""

    def ask(self, request: Message, response: type[M], answered: Callable[[M | Exception], object]) -> None:
        """Ask; `answered` is called once, in a later turn, with the answer or with why there is none."""
        ...
