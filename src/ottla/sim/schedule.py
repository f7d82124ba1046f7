"""Virtual time: what is to happen when, in order, as fast as it can be done."""

import heapq
from collections.abc import Callable


class Schedule:
    """The events to come. Two of the same moment happen in the order in which they were put here."""

    __slots__ = ("_count", "_heap", "now")

    def __init__(self, now: int = 0) -> None:
        self.now = now  # in milliseconds
        self._count = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Let something happen at a moment, or now if that has passed."""
        self._count += 1
        heapq.heappush(self._heap, (max(time_ms, self.now), self._count, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Let something happen in a while."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + delay_ms, self._count, action))

    def run_next(self) -> bool:
        """Let the next thing happen; False when there is none."""
        if not self._heap:
            return False
        self.now, _, action = heapq.heappop(self._heap)
        action()
        return True
