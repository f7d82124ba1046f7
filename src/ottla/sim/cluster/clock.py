"""The clock of a simulated machine."""

from ottla.sim.loop import Timeline

_START_MS = 1_700_000_000_000


class SimClock:
    """Virtual time, as clocks tell it."""

    __slots__ = ("_timeline",)

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return _START_MS + int(self._timeline.now * 1000)

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return self._timeline.now

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return _START_MS * 1_000_000 + int(self._timeline.now * 1e9)
