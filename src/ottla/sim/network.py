"""A network that delays, loses, repeats and reorders, and whose links can be cut in one direction alone."""

from collections.abc import Callable

from ottla.sim.schedule import Schedule
from ottla.world.entropy import Entropy


class Network:
    """The links between nodes. Each message takes its own time, so a later one may arrive first."""

    __slots__ = ("_entropy", "_schedule", "cuts", "delay_ms", "loss", "repeats", "spikes")

    def __init__(self, schedule: Schedule, entropy: Entropy) -> None:
        self._schedule = schedule
        self._entropy = entropy
        self.delay_ms = (1, 5)
        self.loss = 0.0
        self.repeats = 0.0
        self.spikes = 0.0  # messages that take a hundred times as long
        self.cuts: set[tuple[int, int]] = set()

    def send(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        """Deliver a message later, or never. What is under way when a link is cut still arrives."""
        if (source, target) in self.cuts:
            return
        draw = self._entropy.random
        if self.loss and draw() < self.loss:
            return
        self._schedule.after(self._delay(), deliver)
        if self.repeats and draw() < self.repeats:
            self._schedule.after(self._delay() * 3, deliver)

    def _delay(self) -> int:
        low, high = self.delay_ms
        delay_ms = low + int(self._entropy.random() * (high - low + 1))
        if self.spikes and self._entropy.random() < self.spikes:
            delay_ms *= 100
        return delay_ms

    def cut(self, sources: set[int], targets: set[int]) -> None:
        """Let nothing pass from these to those; the other direction stays as it is."""
        self.cuts |= {(source, target) for source in sources for target in targets if source != target}

    def heal(self) -> None:
        """Let everything pass again."""
        self.cuts.clear()
