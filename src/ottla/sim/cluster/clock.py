"""The clock of a simulated machine: its wall clock may jump, what it measures by never does."""

from ottla.sim.loop import Timeline

_START_MS = 1_700_000_000_000


class SimClock:
    """Virtual time, as clocks tell it; `ahead_ms` is by how much the wall clock is wrong."""

    __slots__ = ("_timeline", "ahead_ms")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return _START_MS + self.ahead_ms + int(self._timeline.now * 1000)

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return self._timeline.now

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return (_START_MS + self.ahead_ms) * 1_000_000 + int(self._timeline.now * 1e9)
