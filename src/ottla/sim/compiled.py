"""Which of the two a simulation runs on: the compiled parts, as users do, or their twins in Python.

Both have to make the same history of the same seed. `entered` counts how often a run came by the compiled parts, for a
run that never does proves nothing about them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.broker import lane
from ottla.channel import swift
from ottla.channel.connection import Connection
from ottla.log import log, plain
from ottla.node import node_connections

IS_BUILT = lane.IS_HERE and swift.IS_HERE and plain.append is not None


class Entered(NamedTuple):
    """How often compiled parts did something, by what they did."""

    batches_stored: int = 0
    produces_served: int = 0
    fetches_parked: int = 0
    readers_answered: int = 0


NOTHING_ENTERED = Entered()


def entered() -> Entered:
    """All that compiled parts have done since the process began."""
    return Entered(plain.stored(), *lane.served())


@contextmanager
def only_python() -> Iterator[None]:
    """Let nodes that start meanwhile append, serve and read frames in Python."""
    swapped = (
        (lane, "IS_HERE", False),
        (log, "_append_plain", None),
        (node_connections, "SwiftConnection", Connection),
    )
    before = [getattr(module, name) for module, name, _ in swapped]
    for module, name, python in swapped:
        setattr(module, name, python)
    try:
        yield
    finally:
        for (module, name, _), compiled in zip(swapped, before, strict=True):
            setattr(module, name, compiled)
