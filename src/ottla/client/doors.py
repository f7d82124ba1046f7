"""The doors of a client to the world: the system's, or a simulator's."""

from dataclasses import dataclass
from typing import Protocol

from ottla.world.clock import Clock
from ottla.world.entropy import Entropy
from ottla.world.network import Network


class StampingClock(Clock, Protocol):
    """A clock that records are stamped by."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        ...


@dataclass(frozen=True, slots=True)
class Doors:
    """Where connections, chance and time come from; what is None is the system's."""

    network: Network | None = None
    entropy: Entropy | None = None
    clock: StampingClock | None = None
