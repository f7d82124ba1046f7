"""How long something takes: how often it happened in all, and how it went since somebody last looked."""


class Timing:
    """Counts, and remembers the sum and the longest until they are looked at."""

    __slots__ = ("_longest_s", "_looked_at", "_sum_s", "count")

    def __init__(self) -> None:
        self.count = 0
        self._looked_at = 0
        self._sum_s = self._longest_s = 0.0

    def took(self, seconds: float) -> None:
        """Count one more."""
        self.count += 1
        self._sum_s += seconds
        self._longest_s = max(self._longest_s, seconds)

    def look(self) -> tuple[float, float]:
        """Return mean and longest since the last look, in milliseconds, NaN when there was nothing; and begin anew."""
        fresh = self.count - self._looked_at
        found = (self._sum_s / fresh * 1000, self._longest_s * 1000) if fresh else (_NONE, _NONE)
        self._looked_at = self.count
        self._sum_s = self._longest_s = 0.0
        return found


_NONE = float("nan")
