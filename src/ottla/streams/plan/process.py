"""The operator for everything that the others cannot say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ottla.streams.plan.node import StreamNode
from ottla.streams.stores import Store, WindowStore


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Process(StreamNode):
    """A processor of the user's own: records in, records out, with stores and timers.

    `processor` makes one: a subclass of Processor, or any function of no arguments that returns such an object.
    With `values_only` it may not change keys.
    """

    kind: ClassVar[str] = "process"
    stateful: ClassVar[bool] = True
    processor: Callable[[], Any]
    stores: tuple[Store | WindowStore, ...] = ()
    values_only: bool = False
    place: str = ""
