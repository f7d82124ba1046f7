"""The network, randomness and clock of a client: the system's, or a simulator's."""

from dataclasses import dataclass
from typing import Protocol

from ottla.world.clock import Clock
from ottla.world.entropy import Entropy
from ottla.world.network import Network


class StampingClock(Clock, Protocol):
    """A clock for the timestamps of records."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        ...


@dataclass(frozen=True, slots=True)
class SystemInterfaces:
    """The network, randomness and clock of a client. None stands for the system's."""

    network: Network | None = None
    entropy: Entropy | None = None
    clock: StampingClock | None = None
