"""What flows between operators, and what an operator is.

Keys and values are plain on their way, as `Type.dump` makes them. A user's function gets what `Type.load` makes of
that, anew for each call: so nothing that a function changes is seen by another.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.wire.record import Headers

# The record of a topic that something came of: topic, partition and offset. A timer has none.
Place = tuple[str | None, int | None, int | None]
NOWHERE: Place = (None, None, None)


class Change(NamedTuple):
    """A record, or a change of a table: then `old` is the value before it."""

    key: Any
    value: Any
    timestamp: int
    old: Any = None
    headers: Headers = ()
    place: Place = NOWHERE


class Operator:
    """A node of the plan at work, with what it remembers.

    For each micro-batch `begin` is called, `take` with each record, and `end`. What flows out does not depend on where
    micro-batches begin and end.
    """

    def begin(self, now: int) -> Iterable[Change]:
        """Begin a micro-batch, at a time on the wall."""
        return ()

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Take what came by the input of that number, and return what flows out."""
        raise NotImplementedError

    def wake(self, now: int) -> Iterable[Change]:
        """Learn the time on the wall."""
        return ()

    def end(self) -> Iterable[Change]:
        """End a micro-batch."""
        return ()
